"""Length methods over all backbones, directions and runs of a study: shares of gaps with intervals over sentences.

The layouts ``pooled`` and ``ceiling``. A study of the layout ``systems`` shows the same cells place by place.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from entropy_valley.experiment.config.methods import base_method
from entropy_valley.experiment.frames import PLACE
from entropy_valley.experiment.stats.significance import LEVELS, Analysis, bootstrap_means
from entropy_valley.experiment.stats.summary import BASELINES, by_method, closure
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.report import AGAINST, Data, Row, Shown, aligned, table

RUNS = [*PLACE, "backbone", "seed"]
EVERY = "all"  # backbones together
HINDSIGHT = "hindsight"  # the best of several canvases, sentence by sentence
COUNTED = {"length_mae": "mae", "calls": "calls", "passes": "passes"}  # per sentence, by the names of the CSV
READING = (
    "Gap closure: of the means over all runs and sentences. Brackets: 95 % percentile bootstrap over sentences; those "
    "at the same place in the test sets of the directions are drawn together. ±: sample standard deviation over seeds, "
    "each with the runs of all backbones and directions; n/a: the interval of the reference's lead contains 0.",
    "Canvas error: mean |canvas length − reference canvas|, in slots.",
    footnotes.ORACLE,
)
LEADS = "Leads: runs in which the mean score is higher, without a test."
STUDIED: dict[str, Any] = {"tells": ("backbone",), "needs": ("oracle", *BASELINES, AGAINST)}


# --- The numbers.


def numbers(data: Data, best_of: Sequence[str] = ()) -> pd.DataFrame:
    """One row per backbone, or ``all``, and method.

    Columns: ``runs``; for each prefix of BASELINES the share of the gap (1 is all of it), its limits ``…_low`` and
    ``…_high`` and its deviation ``…_std`` over seeds; ``mae``, ``calls`` and ``passes`` per sentence; ``leads``, the
    runs whose mean score is above that of the study's ``against``; ``above`` and ``below``, the shares of sentences
    that score above and below the reference's length. ``hindsight`` is the best score of the methods ``best_of``.
    """
    scores = by_method(data.sentences, data.metric.name, RUNS)
    if best_of:
        scores[HINDSIGHT] = scores[[*best_of]].max(axis=1)
    backbones = [*data.cells["backbone"].unique()]
    rows = []
    # Of one backbone, all together would be the same rows again.
    for backbone in [EVERY, *backbones] if len(backbones) > 1 else backbones:
        own, cells = scores, data.cells
        # The level stays, so that runs have the same keys with and without it.
        if backbone != EVERY:
            own = scores.xs(backbone, level="backbone", drop_level=False)
            cells = data.cells[data.cells["backbone"] == backbone]
        of_runs = own.groupby(level=RUNS, sort=False).mean()
        shares = gap_shares(own, of_runs, data.statistics)
        costs = cells.groupby("method")[[*COUNTED]].mean()
        for method in own:
            row = {"backbone": backbone, "method": method, "runs": len(of_runs), **shares[method]}
            # The best by hindsight was never decoded, so it costs nothing.
            row |= {shown: costs[name].get(method, math.nan) for name, shown in COUNTED.items()}
            row["leads"] = (of_runs[method] > of_runs[data.study.against]).sum()
            row["above"] = (own[method] > own["oracle"]).mean()
            row["below"] = (own[method] < own["oracle"]).mean()
            rows.append(row)
    return pd.DataFrame(rows)


def gap_shares(scores: pd.DataFrame, of_runs: pd.DataFrame, how: Analysis) -> dict[str, dict[str, float]]:
    """For each method and baseline the share of the reference's lead over it, its limits, its deviation over seeds; NaN
    where the 95 % interval of that lead contains 0."""
    # The deviation is over whole trainings of all directions, not over single runs.
    whole, by_seed = over_places(of_runs), of_runs.groupby(level="seed").apply(over_places)
    # Runs share their sentences: pooled, they would only look like a larger sample.
    of_sentences = scores.groupby(level=[*PLACE, "id"], sort=False).mean()
    places = of_sentences.groupby(level=PLACE, sort=False)
    means = np.mean([bootstrap_means(one.to_numpy(), how) for _, one in places], axis=0)
    drawn = pd.DataFrame(means, columns=scores.columns)
    shares: dict[str, dict[str, float]] = {method: {} for method in scores}
    for baseline, prefix in BASELINES.items():
        # A share of a gap that may be chance would be any number.
        is_gap = np.quantile(drawn["oracle"] - drawn[baseline], LEVELS[0]) > 0
        for method in scores:
            share, of_seeds, of_draws = (
                closure(one[method], one[baseline], one["oracle"]) for one in (whole, by_seed, drawn)
            )
            low, high = np.nanquantile(of_draws, LEVELS) if is_gap else (math.nan, math.nan)
            values = {"": share, "_low": low, "_high": high, "_std": of_seeds.std()}
            shares[method] |= {
                f"{prefix}{name}": float(value) if is_gap else math.nan for name, value in values.items()
            }
    return shares


def over_places(of_runs: pd.DataFrame) -> pd.Series:
    """The mean score of each method: directions and test sets count the same."""
    # A direction with more runs does not count more.
    return of_runs.groupby(level=PLACE, sort=False).mean().mean()


# --- The tables: a section for all backbones together and for each of them, a row for each method.


def share_text(row: Any, prefix: str) -> str:
    """``92.9% [88.2, 98.3] ± 1.2``; n/a where there is none."""
    share, low, high, std = (getattr(row, prefix + name) for name in ("", "_low", "_high", "_std"))
    text = formats.percent(share)
    # What holds by definition has no interval.
    if pd.isna(share) or pd.isna(low) or low == high:
        return text
    text += f" [{formats.number(100 * low, 1)}, {formats.number(100 * high, 1)}]"
    return text if pd.isna(std) else f"{text} ± {100 * std:.1f}"


def number_text(value: float) -> str:
    return formats.dash(formats.number(value, 2))


def row_of(data: Data, row: Any, label: str, *further: str) -> Row:
    """The label of a method, its shares of both gaps, its canvas error, and ``further`` texts."""
    backbone = "All backbones" if row.backbone == EVERY else data.backbone(row.backbone)
    texts = [label, *(share_text(row, prefix) for prefix in BASELINES.values()), number_text(row.mae), *further]
    return Row(texts, f"{backbone}, {row.runs} runs", shaded=row.method == data.study.against)


@table(
    "Length methods over all runs of a study: the share of the {metric} gap between a fixed ratio and the reference's "
    "length that each method closes, and what a sentence costs.",
    **STUDIED,
)
def pooled(data: Data) -> Shown:
    table, against = numbers(data), data.study.against
    columns = aligned("l", "Length method") + aligned("c", *formats.CLOSURE_TITLES.values())
    columns += aligned("r", "Canvas error", f"Leads {data.method(against).short}", "Calls", "Passes")
    rows = []
    for row in table.itertuples():
        # A method does not lead itself.
        leads = formats.NONE if row.method == against else f"{row.leads:.0f} of {row.runs:.0f}"
        further = (leads, number_text(row.calls), number_text(row.passes))
        rows.append(row_of(data, row, data.method(row.method).label, *further))
    return Shown(table, columns, rows, [*READING, LEADS])


@table(
    "The reference's length is not an upper bound: {metric} of canvases beside it, of the candidate nearest to it on "
    "the grids that methods probe, and of the best of several canvases by hindsight.",
    **STUDIED,
)
def ceiling(data: Data) -> Shown:
    """What lies above the reference's length: canvases beside it, the nearest candidates to it, and hindsight, the best
    score of the reference's length and of those at an offset from it, by sentence. It sees the scores: no method can
    have it."""
    methods = dict.fromkeys(cell.method for cell in data.listed)
    beside = [name for name in methods if base_method(data.experiment, name) == "oracle"]
    table = numbers(data, beside)
    columns = aligned("l", "Length method") + aligned("c", *formats.CLOSURE_TITLES.values())
    columns += aligned("r", "Canvas error", "Above the reference's", "Below")
    rows = []
    for row in table.itertuples():
        label = data.method(row.method).label
        if row.method == HINDSIGHT:
            label = f"Best of {len(beside)} by hindsight"
        above, below = formats.percent(row.above), formats.percent(row.below)
        # The reference's length is neither above nor below itself.
        if row.method == "oracle":
            above = below = formats.NONE
        rows.append(row_of(data, row, label, above, below))
    return Shown(table, columns, rows, READING)
