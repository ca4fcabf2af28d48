"""The paired tests of systems: every run by itself, or the mean of several runs, sentence by sentence.

The sentences of two runs are the same ones: a mean over runs has no more of them than a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.closure import RUN, by_run, gap_closures
from entropy_valley.stats.significance import LEVELS, Analysis, PairedTest, bootstrap_means, paired_test

if TYPE_CHECKING:
    from entropy_valley.config.matrix import Cell
    from entropy_valley.tables.reader import Results

COMPARISONS = (("ev", "ratio"), ("ev", "ratio_eos"), ("oracle", "ev"), ("oracle", "ratio"), ("oracle", "ratio_eos"))
OPTIONAL = {"ratio_eos"}
PAIRED = attrgetter("direction", "testset", "seed")  # in what runs of two backbones must agree to be compared


def compare(results: Results, cells: Iterable[Cell], metric: Metric, how: Analysis) -> pd.DataFrame:
    """The COMPARISONS in every run, one row each: the columns of RUN, the two methods, the metric, the test. A run
    without a method of OPTIONAL goes without its comparison.

    Runs are tested one by one: the sentences of two seeds are the same sentences, never a larger sample.
    Raises :class:`InputError` when a run lacks a method.
    """
    rows = []
    for methods in by_run(cells).values():
        for names in COMPARISONS:
            if not OPTIONAL.intersection(names) - methods.keys():
                first, second = (_cell(methods, name) for name in names)
                rows.append(_test(results, first, second, metric, how))
    return pd.DataFrame(rows)


def compare_autoregressive(results: Results, cells: Sequence[Cell], metric: Metric, how: Analysis) -> pd.DataFrame:
    """EV against every autoregressive system in every run that both have, one row each.

    Runs are paired by direction, test set and seed; a run without a partner is left out. Columns as :func:`compare`
    gives them, and ``second_backbone``. Raises :class:`InputError` when nothing pairs up, and as :func:`compare`.
    """
    rows = []
    for methods in by_run(cell for cell in cells if not cell.autoregressive).values():
        first = _cell(methods, "ev")
        for second in (cell for cell in cells if cell.autoregressive and PAIRED(cell) == PAIRED(first)):
            rows.append(_test(results, first, second, metric, how) | {"second_backbone": second.backbone})
    if not rows:
        remedy = "Name an autoregressive backbone that has a seed of the main backbone."
        raise InputError("autoregressive.backbones", "no run of theirs has the seed of a run of the main one", remedy)
    return pd.DataFrame(rows)


def of_shared_seeds(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of the seeds that all backbones have in a direction and test set; all of them where no seed is shared.

    So the means of two backbones differ by just the mean of their differences run by run.
    """
    seeds: dict[tuple[str, str], dict[str, set[int]]] = {}
    for cell in cells:
        seeds.setdefault((cell.direction, cell.testset), {}).setdefault(cell.backbone, set()).add(cell.seed)
    shared = {place: set.intersection(*of_backbone.values()) for place, of_backbone in seeds.items()}
    return [cell for cell in cells if cell.seed in (shared[cell.direction, cell.testset] or {cell.seed})]


def compare_means(
    results: Results, cells: Sequence[Cell], others: Sequence[Cell], metric: Metric, how: Analysis
) -> PairedTest:
    """The test of two systems: of each the sentence-wise mean of its runs, or of several systems."""
    return paired_test(mean_scores(results, cells, metric), mean_scores(results, others, metric), how)


def mean_scores(results: Results, cells: Sequence[Cell], metric: Metric) -> pd.Series:
    """The mean of systems' scores, sentence by sentence."""
    return sum(results.sentences(cell, metric) for cell in cells) / len(cells)


def _cell(methods: dict[str, Cell], name: str) -> Cell:
    if name not in methods:
        problem = f"its run has no cell of method {name}"
        raise InputError(next(iter(methods.values())).name, problem, f"Add {name} to the matrix's methods.")
    return methods[name]


def _test(results: Results, first: Cell, second: Cell, metric: Metric, how: Analysis) -> dict[str, object]:
    """The run and the methods of two systems, the metric, the test on the same sentences, and its bootstrap's seed."""
    test = compare_means(results, [first], [second], metric, how)
    named = {key: getattr(first, key) for key in RUN} | {"first": first.method, "second": second.method}
    return {**named, "metric": metric.name, **asdict(test), "bootstrap_seed": how.seed}


LIMITS = ("closure_low", "closure_high")


def closure_limits(
    results: Results, systems: Sequence[Sequence[Cell]], metric: Metric, how: Analysis
) -> dict[str, float]:
    """Limits of the share of Oracle's lead over Ratio that a system's mean scores close, by the percentile bootstrap:
    the values of LIMITS. ``systems`` are the runs of the system, of Ratio and of Oracle. NaN without the latter two,
    and where one resample in 40 has no gap."""
    if len(systems) == 3:
        scores = np.column_stack([mean_scores(results, one, metric) for one in systems])
        closures = gap_closures(*bootstrap_means(scores, how.resamples, how.seed, how.generator).T)
        if np.isnan(closures).mean() <= LEVELS[0]:
            return dict(zip(LIMITS, map(float, np.nanquantile(closures, LEVELS)), strict=True))
    return dict.fromkeys(LIMITS, math.nan)
