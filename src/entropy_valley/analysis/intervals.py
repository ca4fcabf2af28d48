"""95 % intervals of a study's systems over sentences: of one run, or of the mean of several runs, sentence by sentence.

The sentences of two runs are the same ones: a mean over runs has no more of them than a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from entropy_valley.analysis.comparisons import mean_scores
from entropy_valley.analysis.gap_closure import gap_closures
from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.analysis.significance import LEVELS, bootstrap_means, paired_test
from entropy_valley.late import numpy as np
from entropy_valley.late import pandas as pd

CELL = attrgetter("backbone", "direction", "testset", "pool", "seed", "method", "order", "steps")
DIFFERENCE = {
    "delta": "difference",
    "ci_low": "difference_low",
    "ci_high": "difference_high",
    "p_two_sided": "difference_p",
}
LIMITS = ("closure_low", "closure_high")


def differences(params: Params, keys: Sequence[str]) -> pd.DataFrame:
    """Mean score of each system minus that of the same system of the first cell's backbone, by a paired bootstrap.

    A row for each group of cells that agree in ``keys``, in the cells' order, with the columns of DIFFERENCE. NaN for
    the first backbone itself, and where it lacks the system or a seed.
    """
    first, groups = params.cells[0].backbone, Groups(params.cells, keys)
    rows = []
    for cells in groups:
        others = groups.partners(cells, backbone=first)
        if others and others != cells:
            test = paired_test(
                *(mean_scores(systems, params.metric, cells[0]) for systems in (cells, others)), params.how
            )
            rows.append({column: getattr(test, name) for name, column in DIFFERENCE.items()})
        else:
            rows.append(dict.fromkeys(DIFFERENCE.values(), float("nan")))
    return pd.DataFrame(rows)


def closure_limits(params: Params, keys: Sequence[str], order: str, steps: int) -> pd.DataFrame:
    """Limits of the share of Oracle's lead over Ratio that a system's mean scores close, by the percentile bootstrap.

    Rows as those of :func:`differences`, with the columns LIMITS. Ratio and Oracle have the system's order and T, or
    else ``order`` and ``steps``. NaN for these two, without them, and where one resample in 40 has no gap.
    """
    groups = Groups(params.cells, keys)
    rows = []
    for cells in groups:
        settings = ({}, {"order": order, "steps": steps})
        found = ([groups.partners(cells, method=name, **own) for name in ("ratio", "oracle")] for own in settings)
        rivals = next((pair for pair in found if all(pair)), None)
        shown = rivals is not None and cells not in rivals
        rows.append(_limits(params, [cells, *rivals]) if shown else (float("nan"), float("nan")))
    return pd.DataFrame(rows, columns=LIMITS)


class Groups:
    """Cells that agree in ``keys``, in the order they come; and cells that differ from these in a field alone."""

    def __init__(self, cells: Iterable[ScoredCell], keys: Sequence[str]) -> None:
        self._known = {CELL(cell): cell for cell in cells}
        self._groups: dict[Any, list[ScoredCell]] = {}
        for cell in self._known.values():
            self._groups.setdefault(attrgetter(*keys)(cell), []).append(cell)

    def __iter__(self) -> Iterator[list[ScoredCell]]:
        return iter(self._groups.values())

    def partners(self, cells: Sequence[ScoredCell], **other: Any) -> list[ScoredCell]:
        """Each cell's partner with the values of ``other``; none at all where a cell has none."""
        found = [self._known.get(CELL(replace(cell, **other))) for cell in cells]
        return [] if None in found else found


def _limits(params: Params, systems: Sequence[Sequence[ScoredCell]]) -> tuple[float, float]:
    """``systems`` are the one in question, Ratio and Oracle, each in the same runs."""
    like, sign = systems[0][0], 1 if params.metric.higher_is_better else -1
    scores = np.column_stack([sign * mean_scores(cells, params.metric, like) for cells in systems])
    drawn = bootstrap_means(scores, params.resamples, params.seed, params.generator)
    closures = gap_closures(*drawn.T)
    if np.isnan(closures).mean() > LEVELS[0]:
        return float("nan"), float("nan")
    low, high = np.nanquantile(closures, LEVELS)
    return float(low), float(high)
