"""Where our tables have the numbers of the paper: a function for each table of ours.

Each takes a number of the paper and the rows of its table. It returns our number, unless this table has none: then
None. Our number is a value; or a value for each run, of which the mean and the sample deviation count; or a mean and a
deviation; or a number of one run, no deviation of its own, and that of all runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.stats.paper_numbers import NoRowsError, Published, find, means, select

NONE = float("nan")
Value: TypeAlias = float | pd.Series | tuple[pd.Series, pd.Series | float] | tuple[pd.Series, float, float] | None


class Ours(NamedTuple):
    """A number of ours, as the tables have it (shares, not per cent), and its deviation over runs, NaN if unknown.

    ``spread``: of a number of one run the deviation over all runs, by which it is judged; it is not the number's own.
    """

    value: float
    std: float
    spread: float = NONE


@dataclass(frozen=True)
class TableRows:
    """The rows of a CSV file of ours as texts, None where the config has no such table; and the config's settings.

    ``names`` has this config's names for those of the paper's config. ``metric`` is the main metric, ``steps`` the T of
    the tables, ``seeds`` those of the main backbone.
    """

    frame: pd.DataFrame | None
    names: Mapping[str, str]
    metric: str
    steps: int
    seeds: Sequence[int]

    def column(self, name: str, **where: str) -> pd.Series:
        """The numbers of a column, by run, in the rows that meet the conditions, given in the paper's names.

        Raises :class:`NoRowsError` where there is no row.
        """
        if self.frame is None:
            raise NoRowsError("no such table")
        return select(self.frame, name, **{key: self.names.get(value, value) for key, value in where.items()})

    def seed(self, number: Published) -> str:
        """The seed of the paper's ``run A``, ``run B`` …"""
        run = re.fullmatch("run ([A-Z])", number.setting)
        place = ord(run[1]) - ord("A") if run else 0
        return str(self.seeds[place]) if place < len(self.seeds) else "none"


def ours(number: Published, tables: Mapping[str, TableRows]) -> Ours | None:
    """Our number, from the first of its label's tables that has it; None where the config did not run it.

    Raises :class:`KeyError` for a number that no table of ours has, :class:`InputError` where a table's columns are
    others than expected.
    """
    for name in TABLES_OF.get(number.label, ()):
        try:
            value = FUNCTIONS[name](number, tables[name])
        except NoRowsError:
            return None
        except ValueError as error:
            problem = f"its columns do not have {number.label} {number.metric}: {error}"
            raise InputError(f"{name}.csv", problem, "Make this table again.") from None
        if value is not None:
            return _single(value)
    raise KeyError(number.key)


def why_not(number: Published) -> str:
    """Why there is no number of ours beside one of the paper's."""
    return next((why for metrics, why in WHY_NOT.items() if number.metric.startswith(metrics)), "no table has it")


WHY_NOT = {  # by the beginnings of metrics
    ("parameters_", "size_", "vocabulary_thousand", "pretraining_"): "a fact about the released checkpoint",
    ("gpu_memory",): "their hardware",
    ("accumulation", "micro_batch"): "a batch is divided by its tokens",
    ("case_",): "in the table cases, if `tables.cases` names its sentence",
    ("minutes_", "sittings_"): "up to the annotators",
    ("columns", "flip", "scale_"): "fixed in the form",
    ("version_",): "in the signatures below each table",
    ("steps_logged", "loss_after_"): "only in losses.csv beside the adapter",
}


def _single(value: Value) -> Ours | None:
    """A value of any kind as numbers; None where no number is there."""
    parts = value if isinstance(value, tuple) else (value, value.std() if isinstance(value, pd.Series) else NONE)
    numbers = Ours(*(float(part.mean()) if isinstance(part, pd.Series) else float(part) for part in parts))
    return None if pd.isna(numbers.value) else numbers


# --- Tables of scores: means over runs, and the paired tests of them.


def _scores(number: Published, rows: TableRows, **more: str) -> Value:
    """A score or a gap closure of a method: its mean and deviation over runs."""
    where = {"direction": number.direction, "testset": "wmt22", "backbone": number.backbone, "method": number.system}
    where |= more
    name = "gap_closure_" if number.metric.endswith("_closure") else ""
    return rows.column(f"{name}mean", **where), rows.column(f"{name}std", **where)


def _lead(number: Published, rows: TableRows, first: str, second: str, metric: str) -> Value:
    """The difference of two methods' means."""
    where = {"direction": number.direction, "testset": "wmt22", "backbone": number.backbone, "metric": metric}
    return rows.column("mean", **where, method=first) - rows.column("mean", **where, method=second)


def main(number: Published, rows: TableRows) -> Value:
    metric = "bleu" if number.metric.startswith("bleu") else rows.metric
    match number.metric:
        case "comet" | "bleu" | "comet_closure" | "bleu_closure":
            return _scores(number, rows, metric=metric)
        case "bleu_lead":
            return _lead(number, rows, *number.pair, metric)
        case "span" if number.system == "lengths":
            return _lead(number, rows, "oracle", "ratio", metric)
        case "steps" | "runs":
            where = {"backbone": number.backbone, "testset": "wmt22", "metric": metric, "method": "ev"}
            return rows.column(number.metric, **where).max()
    return None


def crossbb(number: Published, rows: TableRows) -> Value:
    match number.metric:
        case "comet" | "comet_closure":
            return _scores(number, rows, metric=rows.metric)
        case "comet_lead":
            return _lead(number, rows, *number.pair, rows.metric)
        case "closure_least" | "closure_most":
            where = {"testset": "wmt22", "backbone": number.backbone, "metric": rows.metric, "method": "ev"}
            closures = rows.column("gap_closure_mean", **where)
            return closures.min() if number.metric == "closure_least" else closures.max()
    return None


def crossbb_bleu(number: Published, rows: TableRows) -> Value:
    return _scores(number, rows, metric="bleu") if number.metric == "bleu" else None


def full_pareto(number: Published, rows: TableRows) -> Value:
    return _scores(number, rows, metric=rows.metric, steps=number.setting.removeprefix("T="))


def ar_reference(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "testset": "wmt22", "metric": rows.metric, "against": ""}
    if number.metric == "comet_x100":
        where |= {"backbone": number.backbone, "method": number.system}
        return 100 * rows.column("mean", **where), 100 * rows.column("std", **where)
    if number.metric == "comet_x100_lead":
        first, second = (rows.column("mean", **where, method=name).mean() for name in number.pair)
        return 100 * first - 100 * second
    return None


def full_significance(number: Published, rows: TableRows) -> Value:
    where = {"testset": "wmt22", "backbone": number.backbone}
    ev = {**where, "first": "ev", "second": "ratio"}
    match number.metric:
        case "p_largest":
            return pd.concat([rows.column(name, **ev) for name in ("p_two_sided", "wilcoxon_p")]).max()
        case "test_sentences":
            return rows.column("sentences", **ev).max()
        case "resamples":
            return rows.column("resamples", **ev).max()
        case "comparisons" | "comparisons_above":
            others = (where | {"first": "ev", "second": "ratio", "backbone": name} for name in number.system.split("+"))
            lows = pd.concat([rows.column("ci_low", **one) for one in others])
            return len(lows) if number.metric == "comparisons" else (lows > 0).sum()
    if not number.metric.endswith("_lead") and number.label != "tab:full_significance":
        return None
    first, second = number.pair
    where |= {"direction": number.direction, "first": first, "second": second}
    match number.metric:
        case "comet_lead" if number.label == "tab:full_significance":
            return rows.column("delta", **where, seed=rows.seed(number)), NONE, rows.column("delta", **where).std()
        case "comet_lead":
            return rows.column("delta", **where)
        case "ci_low" | "ci_high" | "p_one_sided" | "wilcoxon_p":
            return rows.column(number.metric, **where, seed=rows.seed(number))
    return None


# --- Studies: a row for each run of a method.


def _study(number: Published, rows: TableRows, testset: str, columns: Mapping[str, str] | None = None) -> pd.Series:
    """A column of a method, under the metric's name or as ``columns`` says; the sentences are those of EV."""
    where = {"direction": number.direction, "statistic": "run", "testset": testset}
    if number.metric == "sentences":
        return rows.column("sentences", **where, method="ev")
    name = (columns or {}).get(number.metric, number.metric)
    return rows.column(name, **where, method=number.system)


def candidate_range(number: Published, rows: TableRows) -> Value:
    if number.metric in ("sentences", "mae", "bleu", "comet", "comet_closure"):
        return _study(number, rows, "wmt22-200", {"comet_closure": "closure"})
    return None


def multi_candidate(number: Published, rows: TableRows) -> Value:
    return _study(number, rows, "wmt22-500")


def ratio_sweep(number: Published, rows: TableRows) -> Value:
    match number.metric:
        case "sentences" | "bleu" | "comet":
            return _of_sweep(number, rows)
        case "lead_over_best_ratio" | "closure_over_best_ratio":  # the best of the ratios that the paper has
            of_paper = (one for one in means() if (one.label, one.metric) == (number.label, "comet"))
            comet = {one.system: _of_sweep(one, rows).mean() for one in of_paper if one.direction == number.direction}
            best = max(value for name, value in comet.items() if name.startswith("ratio"))
            lead = comet["ev"] - best
            return lead if number.metric == "lead_over_best_ratio" else lead / (comet["oracle"] - best)
    return None


def _of_sweep(number: Published, rows: TableRows) -> pd.Series:
    if number.system in ("ratio_0.80", "ratio_1.20", "ratio_1.80"):  # each direction's own fixed ratio
        number = replace(number, system="ratio")
    return _study(number, rows, "wmt22-500")


def direct_length_baselines(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "statistic": "run", "testset": "wmt22"}
    if number.metric == "sentences":
        return rows.column("sentences", **where, method="ev")
    method = number.pair[1] or number.system
    column = {"comet_lead": "lead"}.get(number.metric, number.metric)
    return rows.column(column, **where, method=method, order="daedal" if method == "daedal" else "med")


def fwdcount_control(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "statistic": "run", "testset": "wmt22"}
    if number.metric == "best_further_steps":
        more = [rows.column("comet", **where, method="ratio", steps=steps).max() for steps in ("37", "40")]
        return max(more) - rows.column("comet", **where, method="ratio", steps=f"{rows.steps}").max()
    method, _, steps = number.system.partition("@")
    where |= {"method": method, "steps": steps or f"{rows.steps}"}
    match number.metric:
        case "comet" | "bleu" | "calls" | "steps":
            return rows.column(number.metric, **where)
        case "probes":
            return rows.column("calls", **where) - rows.column("steps", **where)
    return None


def defr_transfer(number: Published, rows: TableRows) -> Value:
    testset, _, pool = number.setting.partition(" ")
    where = {"direction": "de-fr", "testset": testset, "statistic": "run"}
    match number.metric:
        case "sentences":
            return rows.column("sentences", **where, pool="200k", method="ev")
        case "comet":
            return rows.column("comet", **where, pool=pool, method=number.system)
        case "comet_lead":
            return rows.column("lead", **where, pool=pool, method="ratio")
        case "ci_low" | "ci_high" | "p_two_sided" | "wilcoxon_p":
            return rows.column(number.metric, **where, pool=pool, method="ratio")
    return None


# --- Reveal orders, categories of sentences, length methods.


def order_sweep_summary(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "testset": "wmt22"}
    match number.metric:
        case "comet":
            return rows.column("value", **where, method="oracle", order=number.system, metric=rows.metric)
        case "comet_lead":
            return rows.column("value", **where, method="oracle", order=number.pair[0], metric="delta")
        case "p_two_sided":
            return rows.column("value", **where, method="oracle", order=number.pair[0], metric="p_two_sided")
        case "span":
            return rows.column("value", **where, metric="source_guided_span")
        case "span_ratio":
            return rows.column("value", **where, metric=f"{number.pair[0]}_ratio_over_span")
    return None


def negative_order(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "testset": "wmt22-challenge", "category": number.setting}
    match number.metric:
        case "comet":
            metric = "other" if number.system == "sig_first" else "main"
        case "comet_lead":
            metric = "delta"
        case "sentences" | "spearman_rho" | "spearman_p":
            metric = number.metric
        case _:
            return None
    return rows.column("value", **where, metric=metric)


def selector_checks(number: Published, rows: TableRows) -> Value:
    match number.metric:
        case "ratios_chosen":
            chosen = {"direction": number.direction, "testset": "wmt22", "check": "chosen", "metric": "count"}
            places = range(1, round(number.value) + 1)
            return sum(rows.column("value", **chosen, item=f"{place}").mean() > 0 for place in places)
        case "sweep_sentences":
            check, item, metric = "sweep", "lowest", "sentences"
        case "sweep_ratio":
            check, item, metric = "sweep", number.setting, "ratio"
        case "entropy":
            check, item, metric = "sweep", number.system, "entropy"
        case "comet_lead":
            check, item, metric = "test", "ev_reassigned", "delta"
        case "ci_low" | "ci_high":
            check, item, metric = "test", "ev_reassigned", number.metric
        case _:
            return None
    where = {"direction": number.direction, "testset": "wmt22", "check": check, "item": item, "metric": metric}
    return rows.column("value", **where)


def dream_instruct(number: Published, rows: TableRows) -> Value:
    """Of the variants that read Dream's logits without its shift, as the authors' code does."""
    losses = {
        "uniform_loss": "uniform_cross_entropy",
        "vocabulary": "vocabulary",
        "loss_final": "cross_entropy_final",
        "loss_min": "cross_entropy_minimum",
        "loss_min_step": "cross_entropy_minimum_step",
    }
    where = {"backbone": f"{number.backbone}-unshifted"}
    match number.metric:
        case "characters":
            return rows.column("value", backbone="", method="reference", metric="mean_characters")
        case "sentences":
            return rows.column("value", **where, method="ev", metric="sentences")
        case "empty_rate":
            return rows.column("value", **where, method=number.system, metric="empty_rate")
        case "characters_least" | "characters_most":
            methods = ("oracle", "ratio", "ev")
            lengths = [rows.column("value", **where, method=one, metric="mean_characters").mean() for one in methods]
            return min(lengths) if number.metric == "characters_least" else max(lengths)
        case "loss_last":
            mean, std = (f"cross_entropy_last_{name}" for name in ("mean", "std"))
            last = ({**where, "method": "", "metric": metric} for metric in (mean, std))
            return tuple(rows.column("value", **one) for one in last)
        case metric if metric in losses:
            return rows.column("value", **where, method="", metric=losses[metric])
    return None


# --- What is lost and what is kept: coverage, failures, the human evaluation.


def coverage(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "testset": "wmt22", "item": number.setting}
    match number.metric:
        case "sentences":
            return rows.column("sentences", **where, method="ev")
        case "retention" | "comet":
            return rows.column("mean", **where, method=number.system)
        case "retention_lead" | "comet_lead":
            return rows.column("delta", **where, method=number.pair[1])
        case "ci_low" | "ci_high":
            return rows.column(number.metric, **where, method=number.pair[1])
    return None


def failure_buckets(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "testset": "wmt22", "statistic": "run", "seed": rows.seed(number)}
    where["rival"] = "ratio"
    match number.metric:
        case "losses":
            cause = "all" if number.label == "sec:appendix_cases" else number.system
            return rows.column("losses", **where, cause=cause)
        case "losses_share":
            return rows.column("share", **where, cause=number.system)
        case "comet_lead":
            return rows.column("delta", **where, cause=number.setting)
    return None


def human_eval_details(number: Published, rows: TableRows) -> Value:
    annotator = "all" if number.setting in ("", "mean", "majority") else number.setting
    statistic = {
        "adequacy_lead": "adequacy", "adequacy_p": "adequacy_p", "fluency_lead": "fluency", "fluency_p": "fluency_p",
        "rated_sentences": "sentences", "fleiss_kappa": "kappa", "sign_test_p": "sign_p",
        "kendall_w_least": "w_low", "kendall_w_most": "w_high",
        "rho_adequacy": "adequacy_rho", "rho_adequacy_p": "adequacy_rho_p", "rho_fluency": "fluency_rho",
    }.get(number.metric)  # fmt: skip
    if number.metric == "preferred":
        statistic = {"ev": "first", "ratio": "second", "tie": "tie"}[number.system]
    if statistic is None:
        return None
    return rows.column("value", direction=number.direction, annotator=annotator, bucket="", statistic=statistic)


# --- The corpus, the training, the cost.


def corpus(number: Published, rows: TableRows) -> Value:
    if number.metric == "median_ratio":
        where = {"direction": number.direction, "backbone": number.backbone, "metric": "length_ratio_median"}
        return rows.column("value", **where)
    return None


def hyperparams(number: Published, rows: TableRows) -> Value:
    match number.metric:
        case "train_pairs":
            return rows.column("value", backbone=number.backbone, key="pairs").max()
        case "trainable_million":
            return rows.column("value", backbone=number.backbone, key="trainable_parameters").max() / 1_000_000
        case "trainable_share":  # of all, with the backbone's, as PEFT counts
            trained = rows.column("value", backbone=number.backbone, key="trainable_parameters").max()
            backbone = find("sec:appendix_repro", "parameters_billion")
            return trained / (trained + 1e9 * backbone.value) if backbone else None
        case "checkpoints":
            return rows.column("value", backbone=number.backbone, key="lora_rank").count()
        case (
            "betas_1" | "betas_2" | "weight_decay" | "learning_rate" | "warmup" | "epochs" | "global_batch"
            | "processes" | "max_tokens" | "lora_rank" | "lora_alpha" | "lora_dropout"
        ):  # fmt: skip
            return rows.column("value", backbone=number.backbone, key=number.metric).mean()
    return None


def cost(number: Published, rows: TableRows) -> Value:
    match number.metric:
        case "probe_share":
            steps = number.setting.removeprefix("T=") or rows.steps
            return rows.column("here", part="probe_cap", item=f"T = {steps}").max()
        case "latency_batch16":
            return rows.column("here", part="latency_batched", direction=number.direction, item=number.system)
        case "gpu_hours":
            return rows.column("here", part="gpu_hours", item="all")
    return None


FUNCTIONS: dict[str, Callable[[Published, TableRows], Value]] = {
    function.__name__: function
    for function in (
        *(main, crossbb, crossbb_bleu, full_pareto, ar_reference, full_significance, candidate_range, multi_candidate),
        *(ratio_sweep, direct_length_baselines, fwdcount_control, defr_transfer, order_sweep_summary, negative_order),
        *(selector_checks, dream_instruct, coverage, failure_buckets, human_eval_details, corpus, hyperparams, cost),
    )
}  # fmt: skip
TABLES_OF = {  # by label of the paper: the tables of ours that have its numbers
    "abstract": ("main",),
    "sec:intro": ("main", "coverage"),
    "sec:method-R": ("corpus",),
    "sec:method-cost": ("main",),
    "sec:exp-setup": ("main", "full_significance", "hyperparams"),
    "sec:exp-main": ("main", "full_significance", "fwdcount_control"),
    "sec:exp-ar": ("ar_reference",),
    "sec:exp-human": ("human_eval_details",),
    "sec:analysis-dissoc": ("main",),
    "sec:limitations": ("ar_reference",),
    "sec:appendix_ablations": ("multi_candidate",),
    "sec:appendix_cases": ("failure_buckets",),
    "sec:appendix_coverage": ("coverage",),
    "sec:appendix_crossbb": ("crossbb", "hyperparams"),
    "sec:appendix_dream7b": ("dream_instruct",),
    "sec:appendix_method": ("full_significance", "order_sweep_summary"),
    "sec:appendix_negatives_sig": ("negative_order", "order_sweep_summary"),
    "sec:appendix_repro": ("main", "full_significance", "hyperparams", "cost"),
    "sec:appendix_selector_checks": ("selector_checks",),
    "fig:hero": ("main", "order_sweep_summary"),
    "fig:human_eval": ("human_eval_details",),
    "tab:crossbb": ("crossbb", "full_significance"),
    "tab:faithfulness_summary": ("coverage",),
    "tab:human_eval": ("human_eval_details",),
    **{
        f"tab:{name}": (name,)
        for name in (
            *("main", "ar_reference", "hyperparams", "candidate_range", "ratio_sweep", "multi_candidate"),
            *("direct_length_baselines", "full_pareto", "full_significance", "fwdcount_control", "coverage"),
            *("failure_buckets", "order_sweep_summary", "negative_order", "crossbb_bleu", "defr_transfer"),
            "human_eval_details",
        )
    },
}
