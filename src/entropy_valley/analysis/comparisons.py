"""The paired tests of every run: EV against Ratio, Oracle against both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import pandas as pd

from entropy_valley.analysis.scores import RUN, sentences
from entropy_valley.analysis.significance import paired_test
from entropy_valley.analysis.spec import ScoredCell
from entropy_valley.errors import InputError

COMPARISONS = (("ev", "ratio"), ("oracle", "ev"), ("oracle", "ratio"))
Runs = dict[tuple[object, ...], dict[str, ScoredCell]]


def compare(
    cells: Iterable[ScoredCell],
    *,
    resamples: int,
    seed: int,
    metric: str = "comet22",
    comparisons: Sequence[tuple[str, str]] = COMPARISONS,
) -> pd.DataFrame:
    """Every comparison in every run, one row each: the columns of RUN, the two methods, the metric, the test.

    Runs are tested one by one: the sentences of two seeds are the same sentences, never a larger sample.
    Raises :class:`InputError` when a run lacks a method or two systems were not scored on the same sentences.
    """
    rows = []
    for run, methods in by_run(cells).items():
        scores = {name: sentences(_cell(methods, name), metric) for name in dict.fromkeys(sum(comparisons, ()))}
        for first, second in comparisons:
            _same_sentences(methods[first], scores[first], methods[second], scores[second])
            test = paired_test(scores[first], scores[second].loc[scores[first].index], resamples=resamples, seed=seed)
            named = {"first": first, "second": second, "metric": metric}
            rows.append(dict(zip(RUN, run, strict=True)) | named | asdict(test) | {"bootstrap_seed": seed})
    return pd.DataFrame(rows)


def by_run(cells: Iterable[ScoredCell]) -> Runs:
    """The cells of each run by method, in the order they come; a method twice in a run is an :class:`InputError`."""
    runs: Runs = {}
    for cell in cells:
        methods = runs.setdefault(tuple(getattr(cell, key) for key in RUN), {})
        if cell.method in methods:
            raise InputError(cell.path, "this cell comes twice", "Name each cell of the matrix once.")
        methods[cell.method] = cell
    return runs


def _cell(methods: dict[str, ScoredCell], name: str) -> ScoredCell:
    if name not in methods:
        place = next(iter(methods.values())).path
        raise InputError(place, f"its run has no cell of method {name}", f"Add {name} to the matrix's methods.")
    return methods[name]


def _same_sentences(first: ScoredCell, scores: pd.Series, second: ScoredCell, others: pd.Series) -> None:
    different = scores.index.symmetric_difference(others.index)
    if len(different):
        raise InputError(
            second.segments,
            f"not the sentences of {first.segments}: {len(different)} ids are in one only, such as {different[0]!r}",
            "Score both on the same test set again.",
        )
