"""The main table: COMET and BLEU of each length method of one backbone in each direction, with gap closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.stats.cells import Params
from entropy_valley.tables import notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.labels import closure_title, method_in
from entropy_valley.tables.lookup import Results, TestPlace, require_one_backbone
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableRow, TableSection


class Main(TableReport):
    """Length methods by direction, for the main backbone. Bold is the best that could be deployed; EV is shaded."""

    caption = (
        "Main table: {metrics} of the length methods for one backbone, mean and sample standard deviation over "
        "training seeds. Gap closure is (method - Ratio) / (Oracle - Ratio), run by run, over the paper's Fixed Ratio "
        "and over the same ratio with the EOS slot that EV and Oracle have; Oracle uses the reference's length and is "
        "an upper bound."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return matrix.table_cells(experiment, experiment.tables.backbone)

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return {"shown": experiment.tables.metrics or []}

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        """A group per direction; cells of several backbones are an :class:`InputError`."""
        results = Results(numbers)
        require_one_backbone(results.backbones)
        groups = by_place(params, results, _row)
        titles = (results.mean_title, *map(closure_title, results.baselines))
        scores = [Column(title, metric.label) for metric in params.shown_metrics for title in titles]
        columns = (Column("Direction", align="l"), Column("Method", align="l"), *scores)
        return Table(
            columns, (TableSection(groups),), (notes.setting(params, results), *notes.reading(params, numbers))
        )


def by_place(
    params: Params, results: Results, row: Callable[[Params, Results, TestPlace, str], TableRow]
) -> tuple[Group, ...]:
    """A group for each direction, in it a row for each method."""
    return tuple(
        Group(
            params.place(place.direction, place.testset),
            tuple(row(params, results, place, name) for name in results.methods),
        )
        for place in results.places
    )


def _row(params: Params, results: Results, place: TestPlace, name: str) -> TableRow:
    label = method_in(params, name, place.direction)
    scores = (cell for metric in params.shown_metrics for cell in results.scored(place, name, metric))
    return TableRow((TableCell(label, bold=name == "ev"), *scores), shaded=name == "ev")
