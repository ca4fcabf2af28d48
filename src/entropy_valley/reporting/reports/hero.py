"""The hero figure's panels: A, the length methods in each direction; B, the same beside autoregressive systems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from entropy_valley.analysis.params import Params
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.late import numpy as np
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats, style
from entropy_valley.reporting.labels import RISING, method
from entropy_valley.reporting.report import FigureReport
from entropy_valley.reporting.results import Place, Results, by_kind, require_one_backbone
from entropy_valley.reporting.style import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPAN = 0.72  # of the unit between two directions that the points of one fill


class Series(NamedTuple):
    """The points of one system: a row of the summary for each direction; no label, no entry in the legend."""

    label: str | None
    colour: Any
    marker: str
    rows: Sequence[Any]


class Hero(FigureReport):
    """The main result at a glance."""

    caption = (
        "A: mean {metric} of the length methods in each direction, with standard deviations over training seeds; "
        "above the band, the share of the gap between Ratio and Oracle that Entropy-Valley closes. B, where an "
        "autoregressive backbone is configured: Entropy-Valley beside that backbone, fine-tuned on the same pairs, "
        "and above the band its lead."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        main = matrix.table_cells(experiment, experiment.tables.backbone)
        return main + matrix.autoregressive_cells(experiment)

    def numbers(self, params: Params) -> pd.DataFrame:
        """The rows of each panel, column ``panel``."""
        plotted = super().numbers(params)
        denoised, autoregressive = by_kind(params, plotted)
        beside = [plotted.assign(panel="B")] if len(autoregressive) else []
        return pd.concat([denoised.assign(panel="A"), *beside])

    def panels(self, params: Params, numbers: pd.DataFrame) -> list[Panel]:
        makers = {"A": length_panel, "B": reference_panel}
        return [makers[name](params, rows) for name, rows in numbers.groupby("panel")]


def length_panel(params: Params, summary: pd.DataFrame) -> Panel:
    """Panel A: mean COMET with deviations over runs, and the share of Oracle's lead over Ratio that EV closes."""
    results = Results(summary)
    require_one_backbone(results.backbones)
    series = [_method(params, results, name) for name in RISING]

    def panel(axes: Axes) -> None:
        for position, (ratio, ev, oracle) in enumerate(zip(*(one.rows for one in series), strict=True)):
            _band(axes, position, ratio.mean, oracle.mean, "gap, % closed by EV")
            _above(axes, position, (ratio, ev, oracle), formats.percent(ev.gap_closure_mean, ev.gap_closure_std))
        _points(axes, series)
        _frame(axes, params, results.places)

    return panel


def reference_panel(params: Params, summary: pd.DataFrame) -> Panel:
    """Panel B: EV against each autoregressive system, the other length methods faint behind it, and EV's lead."""
    results, beams = map(Results, by_kind(params, summary))
    require_one_backbone(results.backbones)
    ratio, ev, oracle = (_method(params, results, name) for name in RISING)
    series = [_behind(ratio), ev, _behind(oracle)]
    series += [_backbone(params, results, beams, backbone) for backbone in beams.backbones]

    def panel(axes: Axes) -> None:
        for position, rows in enumerate(zip(*(one.rows for one in series), strict=True)):
            _, ev, _, *others = rows
            for other in others:
                _band(axes, position, ev.mean, other.mean, "EV − AR")
            leads = [formats.signed(ev.mean - other.mean, params.metric.decimals) for other in others]
            _above(axes, position, rows, "\n".join(leads))
        _points(axes, series)
        _frame(axes, params, results.places)

    return panel


def _method(params: Params, results: Results, name: str) -> Series:
    rows = [results.row(place, name, params.metric) for place in results.places]
    return Series(method(name).short, style.METHOD_COLOURS[name], style.METHOD_MARKERS[name], rows)


def _behind(series: Series) -> Series:
    """Points that another panel is about: pale, and named there."""
    return series._replace(label=None, colour=style.faint(series.colour))


def _backbone(params: Params, results: Results, beams: Results, backbone: str) -> Series:
    """An autoregressive system on the places of the others."""
    index = beams.backbones.index(backbone)
    rows = [beams.row(place._replace(backbone=backbone), beams.methods[0], params.metric) for place in results.places]
    colour, marker = (those[index % len(those)] for those in (style.BACKBONE_COLOURS, style.BACKBONE_MARKERS))
    return Series(params.label("backbones", backbone), colour, marker, rows)


def _points(axes: Axes, series: Sequence[Series]) -> None:
    """The points of a direction stand around its tick, in as many equal slots."""
    offsets = (np.arange(len(series)) - (len(series) - 1) / 2) * SPAN / len(series)
    for offset, one in zip(offsets, series, strict=True):
        means, stds = [row.mean for row in one.rows], [row.std for row in one.rows]
        look = {"fmt": one.marker, "color": one.colour, "markersize": 5, "label": one.label}
        axes.errorbar(np.arange(len(means)) + offset, means, yerr=stds, **look)


def _band(axes: Axes, position: float, low: float, high: float, label: str) -> None:
    """What the number above the points measures, behind them."""
    edges, known = (position - SPAN / 2, position + SPAN / 2), axes.get_legend_handles_labels()[1]
    axes.fill_between(edges, low, high, color=style.BAND, linewidth=0, label="" if label in known else label)


def _above(axes: Axes, position: float, rows: Sequence[Any], text: str) -> None:
    """A text over the highest point and its deviation."""
    top = max(row.mean + (0.0 if math.isnan(row.std) else row.std) for row in rows)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.annotate(text, (position, top), (0, 4), textcoords="offset points", ha="center", bbox=box)


def _frame(axes: Axes, params: Params, places: Sequence[Place]) -> None:
    """The axes' names, and a legend of one line above them: the points, then the band, which matplotlib lists first."""
    axes.set_xticks(range(len(places)), [params.place(place.direction, place.testset) for place in places])
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.margins(y=0.15)
    axes.set_ylabel(params.metric.label)
    (band, *points), (lead, *names) = axes.get_legend_handles_labels()
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(points) + 1}
    axes.legend([*points, band], [*names, lead], handlelength=1, handletextpad=0.4, columnspacing=1.2, **above)
