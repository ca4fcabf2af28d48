"""Scores as tidy frames: system scores of many cells, and the sentence scores of one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from entropy_valley.analysis.params import ScoredCell
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.results import REMEDY, header_path
from entropy_valley.scoring.metrics import Metric

RUN = ("backbone", "direction", "testset", "order", "steps", "seed")


def collect(cells: Iterable[ScoredCell], metrics: Sequence[Metric]) -> pd.DataFrame:
    """One row per cell and metric: the columns of RUN, then ``method``, ``metric`` and ``value``; the cells' order.

    Raises :class:`InputError` when a cell comes twice, or its file lacks a metric or holds a value that is no
    finite number.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for cell in cells:
        for name, value in system_scores(cell, metrics).items():
            row = {**{key: getattr(cell, key) for key in (*RUN, "method")}, "metric": name}
            if tuple(row.values()) in rows:
                raise InputError(cell.name, "this cell comes twice", "Name each cell of the matrix once.")
            rows[tuple(row.values())] = row | {"value": value}
    return pd.DataFrame(rows.values())


def system_scores(cell: ScoredCell, metrics: Iterable[Metric]) -> dict[str, float]:
    """The system scores of a cell by the metrics' names; one that is no finite number is an :class:`InputError`."""
    system, place = cell.scores(), cell.within(header_path(cell.scores_file))
    return {metric.name: _number(place, metric.name, metric.found_in(system)) for metric in metrics}


def sentences(cell: ScoredCell, metric: Metric) -> pd.Series:
    """Sentence scores of a cell, float, indexed by sentence id in the file's order; an id given twice is an error."""
    rows, place = cell.segments(), cell.within(cell.scores_file)
    values = {
        str(row["id"]): _number(f"{place}, sentence {row['id']!r}", metric.name, metric.found_in(row)) for row in rows
    }
    if len(values) < len(rows):
        raise InputError(place, "a sentence id comes twice", REMEDY)
    return pd.Series(values, name=metric.name)


def require_sentences(path: object, found: Iterable[str], testset: str, ids: Iterable[str]) -> None:
    """Raise :class:`InputError` unless the ids ``found`` in a file are those of its test set, in any order."""
    different = set(found) ^ set(ids)
    if different:
        problem = f"not the sentences of {testset}: {len(different)} ids are in one only, such as {min(different)!r}"
        raise InputError(path, problem, REMEDY)


def _number(place: object, metric: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        problem = f"{metric} is {value!r}, not a finite number"
        raise InputError(place, problem, "Remove the file and score the cell again.")
    return float(value)
