"""Where our tables have the numbers of the paper: a function for each table of ours.

Each takes a number of the paper and the rows of its table. It returns our number, unless this table has none: then
None. Our number is a value; or a value for each run, of which the mean and the sample deviation count; or a mean and a
deviation; or a number of one run, no deviation of its own, and that of all runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

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


def scores(number: Published, rows: TableRows) -> Value:
    """A method's mean and deviation over runs, and what follows from means; of `main`, `crossbb` and `full_pareto`."""
    metric = "bleu" if number.metric.startswith("bleu") else rows.metric
    where = {"backbone": number.backbone, "testset": "wmt22", "metric": metric}
    of_direction = where | {"direction": number.direction}
    if number.setting:
        of_direction["steps"] = number.setting.removeprefix("T=")
    pair = ("oracle", "ratio") if number.system == "lengths" else number.pair
    match number.metric:
        case "comet" | "bleu" | "comet_closure" | "bleu_closure":
            name = "gap_closure_" if number.metric.endswith("_closure") else ""
            mean, std = (rows.column(f"{name}{one}", **of_direction, method=number.system) for one in ("mean", "std"))
            return mean, std
        case metric if metric == LEADS.get(number.label) and all(pair):
            first, second = (rows.column("mean", **of_direction, method=name) for name in pair)
            return first - second
        case "steps" | "runs":
            return rows.column(number.metric, **where, method="ev").max()
        case "closure_least" | "closure_most":
            closures = rows.column("gap_closure_mean", **where, method="ev")
            return closures.min() if number.metric == "closure_least" else closures.max()
    return None


LEADS = {"sec:exp-main": "bleu_lead", "tab:crossbb": "comet_lead", "fig:hero": "span"}  # others are in paired tests


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
    where = {"testset": "wmt22", "first": "ev", "second": "ratio"}
    largest = {"p_largest": ["p_two_sided", "wilcoxon_p"], "test_sentences": ["sentences"], "resamples": ["resamples"]}
    if names := largest.get(number.metric):
        return pd.concat([rows.column(name, **where, backbone=number.backbone) for name in names]).max()
    if number.metric in ("comparisons", "comparisons_above"):
        lows = pd.concat([rows.column("ci_low", **where, backbone=name) for name in number.system.split("+")])
        return len(lows) if number.metric == "comparisons" else (lows > 0).sum()
    of_run = number.label == "tab:full_significance"
    first, second = number.pair
    where |= {"backbone": number.backbone, "direction": number.direction, "first": first, "second": second}
    if number.metric == "comet_lead":
        leads = rows.column("delta", **where)
        return (rows.column("delta", **where, seed=rows.seed(number)), NONE, leads.std()) if of_run else leads
    return rows.column(number.metric, **where, seed=rows.seed(number)) if of_run else None


# --- Studies: a row for each run of a method.


def study(number: Published, rows: TableRows, testset: str = "wmt22", **where: str) -> pd.Series:
    """A column of a method, of the second one of a pair; the sentences are those of EV."""
    method = "ev" if number.metric == "sentences" else number.pair[1] or number.system
    column = {"comet_closure": "closure", "comet_lead": "lead"}.get(number.metric, number.metric)
    of_runs = {"direction": number.direction, "statistic": "run", "testset": testset, "method": method}
    return rows.column(column, **of_runs | where)


def candidate_range(number: Published, rows: TableRows) -> Value:
    shown = ("sentences", "mae", "bleu", "comet", "comet_closure")
    return study(number, rows, "wmt22-200") if number.metric in shown else None


def multi_candidate(number: Published, rows: TableRows) -> Value:
    return study(number, rows, "wmt22-500")


def ratio_sweep(number: Published, rows: TableRows) -> Value:
    def of_sweep(one: Published) -> pd.Series:
        own = one.system in ("ratio_0.80", "ratio_1.20", "ratio_1.80")  # each direction's own fixed ratio
        return study(replace(one, system="ratio") if own else one, rows, "wmt22-500")

    if not number.metric.endswith("_over_best_ratio"):
        return of_sweep(number)
    of_paper = (one for one in means() if (one.label, one.metric) == (number.label, "comet"))
    comet = {one.system: of_sweep(one).mean() for one in of_paper if one.direction == number.direction}
    best = max(value for name, value in comet.items() if name.startswith("ratio"))  # of the ratios that the paper has
    lead = comet["ev"] - best
    return lead if number.metric == "lead_over_best_ratio" else lead / (comet["oracle"] - best)


def direct_length_baselines(number: Published, rows: TableRows) -> Value:
    order = {} if number.metric == "sentences" else {"order": "daedal" if "daedal" in number.pair else "med"}
    return study(number, rows, **order)


def fwdcount_control(number: Published, rows: TableRows) -> Value:
    method, _, budget = number.system.partition("@")

    def of_runs(metric: str, steps: str = budget or f"{rows.steps}") -> pd.Series:
        return study(replace(number, metric=metric, system=method), rows, steps=steps)

    if number.metric == "best_further_steps":
        return max(of_runs("comet", steps).max() for steps in ("37", "40")) - of_runs("comet").max()
    if number.metric == "probes":
        return of_runs("calls") - of_runs("steps")
    return of_runs(number.metric) if number.metric in ("comet", "bleu", "calls", "steps") else None


def defr_transfer(number: Published, rows: TableRows) -> Value:
    testset, _, pool = number.setting.partition(" ")
    return study(number, rows, testset, pool=pool or "200k")


# --- Reveal orders, categories of sentences, length methods: tables with a row for each number.


def _value(rows: TableRows, number: Published, where: Mapping[str, str] | None) -> Value:
    """The number in the row that meets the conditions; None without conditions."""
    return rows.column("value", **{"direction": number.direction, "testset": "wmt22", **where}) if where else None


def order_sweep_summary(number: Published, rows: TableRows) -> Value:
    name = number.pair[0]
    of_order = {"method": "oracle", "order": name}
    where = {
        "comet": {**of_order, "metric": rows.metric},
        "comet_lead": {**of_order, "metric": "delta"},
        "p_two_sided": {**of_order, "metric": "p_two_sided"},
        "span": {"metric": "source_guided_span"},
        "span_ratio": {"metric": f"{name}_ratio_over_span"},
    }
    return _value(rows, number, where.get(number.metric))


def negative_order(number: Published, rows: TableRows) -> Value:
    metrics = {name: name for name in ("sentences", "spearman_rho", "spearman_p")}
    metrics |= {"comet": "other" if number.system == "sig_first" else "main", "comet_lead": "delta"}
    of_category = {"testset": "wmt22-challenge", "category": number.setting}
    metric = metrics.get(number.metric)
    return _value(rows, number, {**of_category, "metric": metric} if metric else None)


def selector_checks(number: Published, rows: TableRows) -> Value:
    def value(check: str, item: str, metric: str) -> Any:
        return _value(rows, number, {"check": check, "item": item, "metric": metric})

    match number.metric:
        case "ratios_chosen":
            places = range(1, round(number.value) + 1)
            return sum(value("chosen", f"{place}", "count").mean() > 0 for place in places)
        case "sweep_sentences":
            return value("sweep", "lowest", "sentences")
        case "sweep_ratio":
            return value("sweep", number.setting, "ratio")
        case "entropy":
            return value("sweep", number.system, "entropy")
        case "comet_lead" | "ci_low" | "ci_high":
            return value("test", "ev_reassigned", "delta" if number.metric == "comet_lead" else number.metric)
    return None


def dream_instruct(number: Published, rows: TableRows) -> Value:
    """Of the variants that read Dream's logits without its shift, as the authors' code does."""

    def value(metric: str, method: str = "") -> Any:
        return rows.column("value", backbone=f"{number.backbone}-unshifted", method=method, metric=metric)

    losses = {
        "uniform_loss": "uniform_cross_entropy",
        "vocabulary": "vocabulary",
        "loss_final": "cross_entropy_final",
        "loss_min": "cross_entropy_minimum",
        "loss_min_step": "cross_entropy_minimum_step",
    }
    match number.metric:
        case "characters":
            return rows.column("value", backbone="", method="reference", metric="mean_characters")
        case "sentences" | "empty_rate":
            return value(number.metric, number.system or "ev")
        case "characters_least" | "characters_most":
            lengths = [value("mean_characters", method).mean() for method in ("oracle", "ratio", "ev")]
            return min(lengths) if number.metric == "characters_least" else max(lengths)
        case "loss_last":
            return value("cross_entropy_last_mean"), value("cross_entropy_last_std")
        case metric if metric in losses:
            return value(losses[metric])
    return None


# --- What is lost and what is kept: coverage, failures, the human evaluation.


def coverage(number: Published, rows: TableRows) -> Value:
    columns = {name: name for name in ("sentences", "ci_low", "ci_high")}
    columns |= {"retention": "mean", "comet": "mean", "retention_lead": "delta", "comet_lead": "delta"}
    if number.metric not in columns:
        return None
    where = {"direction": number.direction, "testset": "wmt22", "item": number.setting}
    return rows.column(columns[number.metric], **where, method=number.pair[1] or number.system or "ev")


def failure_buckets(number: Published, rows: TableRows) -> Value:
    columns = {"losses": "losses", "losses_share": "share", "comet_lead": "delta"}
    if number.metric not in columns:
        return None
    where = {"direction": number.direction, "testset": "wmt22", "statistic": "run", "rival": "ratio"}
    cause = number.setting or ("all" if number.pair[1] else number.system)
    return rows.column(columns[number.metric], **where, seed=rows.seed(number), cause=cause)


def human_eval_details(number: Published, rows: TableRows) -> Value:
    statistics = {
        "adequacy_lead": "adequacy", "adequacy_p": "adequacy_p", "fluency_lead": "fluency", "fluency_p": "fluency_p",
        "rated_sentences": "sentences", "fleiss_kappa": "kappa", "sign_test_p": "sign_p",
        "kendall_w_least": "w_low", "kendall_w_most": "w_high",
        "rho_adequacy": "adequacy_rho", "rho_adequacy_p": "adequacy_rho_p", "rho_fluency": "fluency_rho",
        "preferred": {"ev": "first", "ratio": "second"}.get(number.system, number.system),
    }  # fmt: skip
    if number.metric not in statistics:
        return None
    annotator = "all" if number.setting in ("", "mean", "majority") else number.setting
    where = {"direction": number.direction, "annotator": annotator, "bucket": ""}
    return rows.column("value", **where, statistic=statistics[number.metric])


# --- The corpus, the training, the cost.


def corpus(number: Published, rows: TableRows) -> Value:
    where = {"direction": number.direction, "backbone": number.backbone, "metric": "length_ratio_median"}
    return rows.column("value", **where) if number.metric == "median_ratio" else None


KEYS = {
    "train_pairs": "pairs", "trainable_million": "trainable_parameters", "trainable_share": "trainable_parameters",
    "checkpoints": "lora_rank",
    **{
        name: name
        for name in (
            *("betas_1", "betas_2", "weight_decay", "learning_rate", "warmup", "epochs", "global_batch", "processes"),
            *("max_tokens", "lora_rank", "lora_alpha", "lora_dropout"),
        )
    },
}  # fmt: skip


def hyperparams(number: Published, rows: TableRows) -> Value:
    if number.metric not in KEYS:
        return None
    values = rows.column("value", backbone=number.backbone, key=KEYS[number.metric])
    match number.metric:
        case "train_pairs":
            return values.max()
        case "trainable_million":
            return values.max() / 1_000_000
        case "trainable_share":  # of all, with the backbone's, as PEFT counts
            backbone = find("sec:appendix_repro", "parameters_billion")
            return values.max() / (values.max() + 1e9 * backbone.value) if backbone else None
        case "checkpoints":
            return values.count()
    return values.mean()


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
    **dict.fromkeys(("main", "crossbb", "crossbb_bleu", "full_pareto"), scores),
    **{
        function.__name__: function
        for function in (
            *(ar_reference, full_significance, candidate_range, multi_candidate, ratio_sweep, direct_length_baselines),
            *(fwdcount_control, defr_transfer, order_sweep_summary, negative_order, selector_checks, dream_instruct),
            *(coverage, failure_buckets, human_eval_details, corpus, hyperparams, cost),
        )
    },
}
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
