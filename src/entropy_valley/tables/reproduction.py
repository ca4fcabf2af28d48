"""A study's systems beside what the paper prints for LLaDA-8B-Base: the check of a reproduction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.config.schema import Study
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import summarise
from entropy_valley.stats.paper_numbers import deviation, find
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import OfStudy, TableReport, of_one_backbone
from entropy_valley.tables.labels import method_in
from entropy_valley.tables.lookup import Results, TestPlace
from entropy_valley.tables.main import by_place
from entropy_valley.tables.render import Column, Note, Table, TableCell, TableRow, TableSection

NONE = float("nan")
PUBLISHED = {"comet22": "comet", "bleu": "bleu"}  # our metrics as the transcription calls them
PRINTED = ["paper_mean", "paper_std", "paper_gap_closure_mean", "paper_gap_closure_std"]
TITLES = ("Here", "Paper", "Difference", "Closure here", "Closure in the paper")
NOTES = (
    Note("Paper: means over three runs of LLaDA-8B-Base on all 2,037 sentences; – where the paper has no such number."),
    Note("Difference: here minus the paper's mean."),
)


class Reproduction(OfStudy, TableReport):
    """A group for each direction, a row for each method, ours and the paper's number side by side."""

    caption = (
        "{metric} and BLEU here beside those that the paper prints for LLaDA-8B-Base. Oracle uses the reference's "
        "length and is an upper bound."
    )

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        yield from of_one_backbone("the layout reproduction", cells)
        if len({(cell.order, cell.steps) for cell in cells}) > 1:
            yield "the layout reproduction is of one reveal order and one T; name one of each"

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return {"shown": experiment.tables.metrics or []}

    def numbers(self, params: Params) -> pd.DataFrame:
        return reproduction(params)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        results = Results(numbers)
        groups = by_place(params, results, _row)
        scores = [Column(title, metric.label) for metric in params.shown_metrics for title in TITLES]
        columns = (Column("Direction", align="l"), Column("Method", align="l"), *scores)
        lines = (notes.setting(params, results), *NOTES, *notes.reading(params, numbers))
        return Table(columns, (TableSection(groups),), lines)


# --- The numbers.


def published(metric: str, direction: str, method: str) -> list[float]:
    """The main table's mean and deviation over runs, and those of the gap closure (shares); NaN where it has none."""
    values = []
    for name in ("", "_closure"):
        mean = find("tab:main", f"{PUBLISHED.get(metric)}{name}", direction=direction, system=method)
        std = deviation(mean) if mean else None
        values += [number.value / number.scale if number else NONE for number in (mean, std)]
    return values


def reproduction(params: Params) -> pd.DataFrame:
    """The summary of :func:`summarise`, with ``paper_mean``, ``paper_std``, ``difference`` (ours minus the paper's),
    ``paper_gap_closure_mean`` and ``paper_gap_closure_std``; NaN where the paper has no such number."""
    summary = summarise(params.cells, params.metrics)
    keys = summary[["metric", "direction", "method"]].itertuples(index=False, name=None)
    summary[PRINTED] = [published(*key) for key in keys]
    summary["difference"] = summary["mean"] - summary["paper_mean"]
    return summary


# --- The layout.


def _row(params: Params, results: Results, place: TestPlace, name: str) -> TableRow:
    cells = (cell for metric in params.shown_metrics for cell in _compared(results, place, name, metric))
    return TableRow((TableCell(method_in(params, name, place.direction)), *cells), shaded=name == "ev")


def _compared(results: Results, place: TestPlace, name: str, metric: Metric) -> list[TableCell]:
    row, decimals = results.row(place, name, metric), metric.decimals
    if pd.isna(row.paper_mean):
        paper = difference = closure = formats.NONE
    else:
        paper = formats.mean_std(row.paper_mean, row.paper_std, decimals)
        difference = formats.signed(row.difference, decimals)
        has_closure = not pd.isna(row.paper_gap_closure_mean)
        closure = (
            formats.percent(row.paper_gap_closure_mean, row.paper_gap_closure_std) if has_closure else formats.NONE
        )
    own = results.score(place, name, metric), TableCell(paper), TableCell(difference)
    return [*own, results.closure(place, name, metric), TableCell(closure)]
