"""All backbones beside each other: scores of Oracle, Ratio and EV as a table, EV's gap closure as a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import Params
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import FigureReport, TableReport
from entropy_valley.tables.labels import closure_title, method
from entropy_valley.tables.lookup import Results, TestPlace
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableRow, TableSection
from entropy_valley.tables.style import INK, SERIES_COLOURS, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = ("oracle", "ratio", "ratio_eos", "ev")  # those of these that the matrix has
SPAN = 0.8  # of the unit between two backbones that their bars fill


class CrossBackbone(TableReport):
    """Scores in the main metric: a group per backbone, a row per direction. Its CSV has every metric."""

    caption = (
        "The length methods on every masked-diffusion backbone and direction, in {metric}, with EV's lead over Fixed "
        "Ratio and the share of Oracle's lead that it closes, also over Fixed Ratio with an EOS slot."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return _cells(experiment)

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return {"shown": [experiment.scoring.comet.key]}

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        results = Results(numbers)
        shown = [method(name).short for name in METHODS if name in results.methods]
        titles = (*shown, "Δ EV−Ratio", *map(closure_title, results.baselines))
        columns = (Column("Backbone", align="l"), Column("Direction", align="l"), *map(Column, titles))
        sections = tuple(
            TableSection(_groups(params, results, metric), metric.label) for metric in params.shown_metrics
        )
        return Table(columns, sections, (notes.setting(params, results), *notes.reading(params, numbers)))


class CrossBackboneBleu(CrossBackbone):
    """The same in sacreBLEU."""

    caption = CrossBackbone.caption.replace("{metric}", "sacreBLEU")

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return {"shown": ["bleu"]}

    def numbers(self, params: Params) -> pd.DataFrame:
        return super().numbers(params).query("metric == 'bleu'")


class CrossBackboneFigure(FigureReport):
    """Bars of EV's mean gap closure in per cent with deviations over runs; no gap to close prints n/a."""

    caption = (
        "Share of the {metric} gap between Fixed Ratio and Oracle that Entropy-Valley closes, by backbone and "
        'direction. Bars are standard deviations over training seeds; "n/a": Oracle does not lead Ratio in any run.'
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return _cells(experiment)

    def numbers(self, params: Params) -> pd.DataFrame:
        return super().numbers(params).query("method == 'ev'")

    def panels(self, params: Params, numbers: pd.DataFrame) -> list[Panel]:
        results = Results(numbers)
        series = list(dict.fromkeys((place.direction, place.testset) for place in results.places))

        def panel(axes: Axes) -> None:
            for index, (direction, testset) in enumerate(series):
                offset = (index - (len(series) - 1) / 2) * SPAN / len(series)
                places = {i: TestPlace(name, direction, testset) for i, name in enumerate(results.backbones)}
                bars = {i + offset: place for i, place in places.items() if place in results.places}
                colour, label = SERIES_COLOURS[index % len(SERIES_COLOURS)], params.place(direction, testset)
                _bars(axes, params.metric, results, bars, width=SPAN / len(series), color=colour, label=label)
            axes.margins(y=0.1)
            axes.axhline(0, color=INK, linewidth=0.7)
            names = [params.label("backbones", name) for name in results.backbones]
            axes.set_xticks(range(len(names)), names)
            axes.set_ylabel(f"{params.metric.label} gap closed by EV (%)")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(series), handlelength=1)

        return [panel]


def _cells(experiment: Experiment) -> list[matrix.Cell]:
    """Those of the main tables; none where a single backbone has nothing beside it."""
    return matrix.table_cells(experiment) if len(experiment.matrix.backbones) > 1 else []


def _groups(params: Params, results: Results, metric: Metric) -> tuple[Group, ...]:
    return tuple(
        Group(
            params.label("backbones", backbone),
            tuple(_row(params, results, place, metric) for place in results.places if place.backbone == backbone),
        )
        for backbone in results.backbones
    )


def _row(params: Params, results: Results, place: TestPlace, metric: Metric) -> TableRow:
    shown = [name for name in METHODS if name in results.methods]
    scores = [results.score(place, name, metric, shaded=name == "ev") for name in shown]
    delta = formats.signed(results.row(place, "ev", metric).delta_ratio, metric.decimals)
    closures = (results.closure(place, "ev", metric, shaded=True, baseline=name) for name in results.baselines)
    return TableRow((TableCell(params.place(place.direction, place.testset)), *scores, TableCell(delta), *closures))


def _bars(
    axes: Axes, metric: Metric, results: Results, bars: dict[float, TestPlace], width: float, **look: str
) -> None:
    """One direction's bars at their positions, each with its value or n/a."""
    rows = [results.row(place, "ev", metric) for place in bars.values()]
    means, stds = [100 * row.gap_closure_mean for row in rows], [100 * row.gap_closure_std for row in rows]
    axes.bar(list(bars), means, 0.92 * width, **look)
    axes.errorbar(list(bars), means, yerr=stds, fmt="none", ecolor=INK, elinewidth=0.9)
    for position, mean, std in zip(bars, means, stds, strict=True):
        text = formats.NOT_AVAILABLE if math.isnan(mean) else formats.minus(f"{mean:.1f}")
        height = 0.0 if math.isnan(mean) else max(0.0, mean + (0.0 if math.isnan(std) else std))
        axes.annotate(text, (position, height), (0, 2.5), textcoords="offset points", ha="center", fontsize=7)
