"""The table of a matrix of several reveal orders or step budgets: each length method under each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.stats.cells import Params
from entropy_valley.tables import notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.labels import closure_title, method_in, order_label
from entropy_valley.tables.lookup import Results, TestPlace
from entropy_valley.tables.order_sweep import described_orders
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

WITHIN = Note("Gap closure and bold compare the methods of one reveal order and one T.")


class MatrixTable(TableReport):
    """All cells of the matrix: a section per backbone and order, a group per direction, in it the methods of each T."""

    caption = (
        "The whole matrix: {metrics} of every length method under every reveal order and step budget T, mean and "
        "sample standard deviation over training seeds. Gap closure is (method - Ratio) / (Oracle - Ratio) under the "
        "same order and T."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        """None where the main tables show the only order and step budget."""
        several = len(experiment.matrix.orders) > 1 or len(experiment.matrix.steps) > 1
        return matrix.cells(experiment) if several else []

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return {**described_orders(experiment, cells), "shown": experiment.tables.metrics or []}

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        settings = [Results(rows) for _, rows in numbers.groupby(["order", "steps"], sort=False)]
        titles = (settings[0].mean_title, *map(closure_title, settings[0].baselines))
        scores = [Column(title, metric.label) for metric in params.shown_metrics for title in titles]
        labels = (Column("Direction", align="l"), Column("T", align="r"), Column("Method", align="l"))
        sections = tuple(_sections(params, settings))
        described = (_described(params, settings), WITHIN, *notes.reading(params, numbers))
        return Table((*labels, *scores), sections, described)


def _sections(params: Params, settings: Sequence[Results]) -> Iterator[TableSection]:
    """One for each backbone and order."""
    for backbone in settings[0].backbones:
        places = [place for place in settings[0].places if place.backbone == backbone]
        for order in _orders(settings):
            of_order = [results for results in settings if results.order == order]
            groups = (
                Group(params.place(place.direction, place.testset), tuple(_rows(params, of_order, place)))
                for place in places
            )
            yield TableSection(tuple(groups), f"{params.label('backbones', backbone)}, {_label(params, order)}")


def _rows(params: Params, settings: Sequence[Results], place: TestPlace) -> Iterator[TableRow]:
    """The methods of each budget; T stands in the first of their rows."""
    for results in settings:
        steps = itertools.chain([str(results.steps)], itertools.repeat(""))
        for text, name in zip(steps, results.methods, strict=False):
            label = TableCell(method_in(params, name, place.direction), bold=name == "ev")
            scores = (cell for metric in params.shown_metrics for cell in results.scored(place, name, metric))
            yield TableRow((TableCell(text), label, *scores), shaded=name == "ev")


def _orders(settings: Sequence[Results]) -> list[str]:
    return list(dict.fromkeys(results.order for results in settings))


def _label(params: Params, order: str) -> str:
    return order_label(order, params["orders"][order])


def _described(params: Params, settings: Sequence[Results]) -> Note:
    """Whose numbers these are."""
    backbones = ", ".join(params.label("backbones", name) for name in settings[0].backbones)
    orders = "; ".join(_label(params, order) for order in _orders(settings))
    steps = ", ".join(dict.fromkeys(str(results.steps) for results in settings))
    return Note(f"Backbones: {backbones}. Reveal orders: {orders}. T = {steps}.")
