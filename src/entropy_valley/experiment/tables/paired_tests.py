"""Systems tested against each other, run by run: the paired tests of all runs, and EV beside autoregressive systems."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.experiment.checking import subject
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell, autoregressive_cells, table_cells
from entropy_valley.experiment.config.paths import checkpoint_of
from entropy_valley.experiment.frames import PLACE, SETTING, Frames
from entropy_valley.experiment.stats.significance import Analysis, paired_test
from entropy_valley.experiment.stats.summary import run_by_run, summary
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.report import ZEROS, Bold, Data, Names, Row, Shown, aligned, table
from entropy_valley.experiment.tables.scores import by_keys, main_cells, places_of, ranked

# --- The paired tests of every run: Oracle, EV and Ratio against each other, and how many of the tests hold.

COMPARISONS = (("ev", "ratio"), ("ev", "ratio_eos"), ("oracle", "ev"), ("oracle", "ratio"), ("oracle", "ratio_eos"))
LEVEL = 0.001  # of both p, below which a lead holds, as in the paper's sentence on all backbones


@table(
    "Paired sentence-level {metric} tests of each run: bootstrap, Wilcoxon signed-rank {zeros}, and paired Cohen's d. "
    "Seeds are never pooled. Below, in how many runs each lead holds.",
    table_cells,
    metrics=Names.only_main,
)
def full_significance(data: Data) -> Shown:
    """EV, Ratio and Oracle against each other, sentence by sentence: a section per backbone, a group per run."""
    metric, how = data.metric, data.statistics
    # No main table has pools.
    tests = compare(data.sentences, metric.name, how).drop(columns="pool")
    titles = ("Δ [95 % CI]", "p", "Wilcoxon's p", "Cohen's d")
    columns = aligned("l", "Run", "Comparison") + aligned("c", *titles)
    rows = []
    for test in tests.itertuples():
        texts = [
            f"{data.place(test.direction, test.testset)}, seed {test.seed}",
            data.difference(test.first, test.second),
            formats.interval(test.delta, test.ci_low, test.ci_high, metric.decimals),
            test.p_two_sided_printed,
            formats.small_p(test.wilcoxon_p),
            formats.signed(test.cohens_d, 2),
        ]
        rows.append(Row(texts, data.backbone(test.backbone)))
    notes = [
        f"{metric.label} of each sentence, in each run (training seed) by itself.",
        f"Δ and p: paired bootstrap, {how.resamples:,} resamples, percentile interval. All p here are two-sided: twice "
        "the smaller share of resamples on either side of 0. Those of the paper's table are one-sided, as p_one_sided "
        "in the CSV.",
        f"Wilcoxon: signed-rank test, {ZEROS[how.wilcoxon_zeros]}. d: paired, {how.cohen} deviation.",
        "No p is corrected for the number of tests, here as in the paper.",
        *footnotes.few_sentences(tests["sentences"]),
        *held(data, tests),
    ]
    return Shown(tests, columns, rows, notes, labels=2)


def compare(sentences: pd.DataFrame, metric: str, how: Analysis) -> pd.DataFrame:
    """The COMPARISONS in every run, one row each: the columns of MATCHED, the methods ``first`` and ``second``, the
    ``metric``, the values of :func:`paired_test`, ``bootstrap_seed``, and both p of the bootstrap as printed.

    Runs are tested one by one: the sentences of two seeds are the same sentences, never a larger sample.
    """
    rows = []
    for run, scores in run_by_run(sentences, metric):
        # Seeds share their sentences: pooled, they would only look like a larger sample.
        for first, second in COMPARISONS:
            if second in scores:  # a run without the ratio with an EOS slot goes without its comparisons
                rows.append(_tested(run, scores[first], scores[second], metric, how))
    return pd.DataFrame(rows)


def _tested(run: Mapping[str, Any], first: pd.Series, second: pd.Series, metric: str, how: Analysis) -> dict[str, Any]:
    test = {**run, "first": first.name, "second": second.name, "metric": metric, **paired_test(first, second, how)}
    test["bootstrap_seed"] = how.seed
    for name, sides in (("p_one_sided", 1), ("p_two_sided", 2)):
        test[f"{name}_printed"] = formats.p_value(test[name], how.resamples, sides)
    return test


def holds(tests: pd.DataFrame) -> pd.Series:
    """Of each test, whether the first system leads: the interval lies above 0, and the two-sided p of the bootstrap and
    of Wilcoxon's test below LEVEL. A bootstrap's p of 0 says no more than that it is below 2 / resamples."""
    # Of 1,000 resamples even none on the other side says only p < 0.002.
    bootstrap = (tests["p_two_sided"] < LEVEL) & (2 / tests["resamples"] <= LEVEL)
    return (tests["ci_low"] > 0) & bootstrap & (tests["wilcoxon_p"] < LEVEL)


def held(names: Names, tests: pd.DataFrame) -> Iterator[str]:
    """In how many runs each comparison holds, in all and for each backbone."""
    resamples = names.statistics.resamples
    few = f" ({resamples:,} resamples are too few for that)" if 2 / resamples > LEVEL else ""
    yield f"A lead holds if its interval is above 0 and both p below {LEVEL:g}{few}. In how many runs:"
    tests = tests.assign(held=holds(tests))
    for (first, second), rows in tests.groupby(["first", "second"], sort=False):
        parts = []
        for backbone, of_one in rows.groupby("backbone", sort=False)["held"]:
            parts.append(f"{names.backbone(backbone)} {of_one.sum()} of {len(of_one)}")
        several = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        count = f"{rows['held'].sum()} of {len(rows)}"
        yield f"{names.difference(first, second)}: {count}{several}."


# --- Matched data: one backbone's length methods beside autoregressive systems of the same pairs.

READING = (
    "Scores and differences × 100, as in the paper, over the training seeds that all systems of a direction have.",
    footnotes.ORACLE,
    "Bold: the best system of a direction that sees no reference.",
    "Differences: run by run at the same training seed, with the 95 % bootstrap interval over its sentences.",
    "A mean of them has no deviation: the two trainings of a seed are unrelated, so the pairing is arbitrary.",
    "The CSV has the scores from 0 to 1, sacreBLEU, and the p-values of the differences.",
)
KEY = [*SETTING, "method", "against", "metric"]
NUMBERS = ["mean", "std", "runs", "ci_low", "ci_high", "p_one_sided", "p_two_sided", "p_one_sided_printed"]
NUMBERS += ["p_two_sided_printed", "sentences", "resamples", "bootstrap_seed"]


def matched_cells(experiment: Experiment) -> list[Cell]:
    """The main table's and the autoregressive ones; none without these."""
    autoregressive = autoregressive_cells(experiment)
    return main_cells(experiment) + autoregressive if autoregressive else []


@table(
    "Matched data: {metric} × 100 of the main backbone's length methods and of an autoregressive backbone that was "
    "fine-tuned on the same pairs with the same prompts, over the training seeds that both have. Below, Entropy-Valley "
    "minus the autoregressive backbone, run by run; seeds are never pooled.",
    matched_cells,
)
def ar_reference(data: Data) -> Shown:
    """The main backbone beside the autoregressive ones, over the seeds that all have, and EV's lead run by run."""
    # Else a mean over more seeds stands beside one over fewer.
    means = summary(Frames(data.sentences, of_shared_seeds(data.cells)), data.metrics)
    tests = compare_autoregressive(data.sentences, data.metric.name, data.statistics).assign(runs=1)
    tests = tests.rename(columns={"first": "method", "second_backbone": "against", "delta": "mean"})
    # A mean has no deviation: two trainings of one seed have nothing in common, and another pairing of the same runs
    # would give another one.
    over_runs = tests.groupby(KEY, sort=False)["mean"].agg(mean="mean", runs="count").reset_index()
    leads = pd.concat([over_runs, tests])
    numbers = pd.concat([means, leads]).reindex(columns=[*KEY, "seed", *NUMBERS])
    means = means[means["metric"] == data.metric.name]
    places = places_of(means)
    columns = aligned("l", "System") + aligned("r", "Size") + aligned("l", "Setting")
    columns += aligned("c", *(data.place(*place) for place in places), over=f"{data.metric.label} × 100")
    rows = [*system_rows(data, means, places), *lead_rows(data, leads, places)]
    notes = [footnotes.setting(data), footnotes.spread(means), *READING]
    return Shown(numbers, columns, rows, notes)


def compare_autoregressive(sentences: pd.DataFrame, metric: str, how: Analysis) -> pd.DataFrame:
    """EV against every autoregressive system (no steps) in every run that both have, one row each.

    Runs are paired by direction, test set and seed; a run without a partner is left out. Columns as :func:`compare`
    gives them, and ``second_backbone``. Raises :class:`InputError` when nothing pairs up.
    """
    # A system that writes from left to right has no step budget.
    beams = list(run_by_run(sentences[sentences["steps"] == 0], metric))
    rows = []
    for run, scores in run_by_run(sentences[sentences["steps"] > 0], metric):
        for other, others in beams:
            if all(run[key] == other[key] for key in (*PLACE, "seed")):
                # The sentences of both in one order: a paired test never looks at ids.
                for name in others:
                    test = _tested(run, scores["ev"], others[name].loc[scores.index], metric, how)
                    rows.append(test | {"second_backbone": other["backbone"]})
    if not rows:
        remedy = "Name an autoregressive backbone that has a seed of the main backbone."
        raise InputError("autoregressive.backbones", "no run of theirs has the seed of a run of the main one", remedy)
    return pd.DataFrame(rows)


def of_shared_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows of the seeds that all backbones have in a direction and test set; all of them where no seed is shared.

    So the means of two backbones differ by just the mean of their differences run by run.
    """
    backbones = cells.groupby(PLACE)["backbone"].transform("nunique")
    shared = cells.groupby([*PLACE, "seed"])["backbone"].transform("nunique") == backbones
    # In a place where no seed is shared, each backbone keeps its own.
    has_shared = shared.groupby([cells[key] for key in PLACE]).transform("any")
    return cells[shared | ~has_shared]


def decimals(names: Names) -> int:
    """Of scores × 100."""
    return max(0, names.metric.decimals - 2)


def system_rows(names: Names, means: pd.DataFrame, places: Sequence[Any]) -> Iterator[Row]:
    """A section per backbone, a row for each system, the best that could be deployed bold in each place."""
    # Further length methods of the main table have their own studies.
    shown = means[means["method"].isin(formats.RISING) | (means["steps"] == 0)]
    of_place = by_keys(ranked(names, shown, PLACE), "backbone", *PLACE, "method")
    for backbone, rows in shown.groupby("backbone", sort=False):
        denoised = rows["steps"].iloc[0] > 0
        kind = "masked diffusion" if denoised else "autoregressive, same training pairs"
        setting = "zero-shot" if names.experiment.backbones[backbone].zero_shot else "LoRA-SFT"
        # A variant has the shape of its origin.
        shape = subject.backbone(names.experiment, checkpoint_of(names.experiment, backbone))["arguments"]
        # It may be known only from its checkpoint.
        size = formats.parameters(subject.Size.of(shape).parameters) if shape else formats.NONE
        for method in formats.RISING if denoised else rows["method"].unique():
            texts = [names.method(method).label, size, setting]
            for place in places:
                row = of_place[backbone, *place, method]
                text = formats.mean_std(100 * row.mean, 100 * row.std, decimals(names))
                texts.append(Bold(text) if row.best else text)
            yield Row(texts, f"{names.backbone(backbone)}, {kind}", shaded=method == "ev")


def lead_rows(names: Names, leads: pd.DataFrame, places: Sequence[Any]) -> Iterator[Row]:
    """A section per autoregressive backbone: the mean where there are several runs, then each with its interval."""
    for backbone, rows in leads.groupby("against", sort=False):
        lines: dict[str, dict[Any, str]] = {}
        for row in rows.sort_values("seed", na_position="first", kind="stable").itertuples():
            place = (row.direction, row.testset)
            if pd.notna(row.seed):
                text = formats.interval(100 * row.mean, 100 * row.ci_low, 100 * row.ci_high, decimals(names))
                lines.setdefault(f"Seed {row.seed:.0f}", {})[place] = text
            # A mean over one run is that run.
            elif rows["seed"].nunique() > 1:
                lines.setdefault("Mean over runs", {})[place] = formats.signed(100 * row.mean, decimals(names))
        # A seed that one direction lacks still has a row.
        for label, texts in lines.items():
            section = f"{names.method('ev').label} − {names.backbone(backbone)}"
            yield Row([label, "", "", *(texts.get(place, formats.NOT_AVAILABLE) for place in places)], section)
