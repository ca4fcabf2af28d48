"""The selectors' figure: a panel for each direction, each system a point, its score against the passes it takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from entropy_valley.analysis.cells import Params
from entropy_valley.analysis.closure import with_costs
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.matrix import Cell
from entropy_valley.experiment.schema import Study
from entropy_valley.reporting.labels import METHODS, method_in, ordered, shown
from entropy_valley.reporting.report import FigureReport, OfStudy, of_one_backbone
from entropy_valley.reporting.results import require_one_backbone
from entropy_valley.reporting.style import METHOD_COLOURS, METHOD_MARKERS, SERIES_COLOURS, Panel, faint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS, SIZE = ("o", "^", "v", "P", "X", "<", ">", "h"), 4.5
PLACE = ["backbone", "direction", "testset"]
LINE, FRAME = 0.125, 0.7  # inches: from one label to the next; what a panel is higher than its axes
LOGARITHMIC = 3.0  # passes that differ by more than this factor get a logarithmic axis


class Point(NamedTuple):
    """A system of a panel: its printed name, its marker and colour, and its row of the summary."""

    name: str
    look: dict[str, Any]
    row: Any


class SystemsFigure(OfStudy, FigureReport):
    """A panel for each direction, a point for each system, Oracle a dashed line; where a study asks for it."""

    caption = (
        "Mean {metric} of each system against the passes that a sentence takes by itself, with standard deviations "
        "over training seeds. The dashed line is Oracle length, which needs the reference."
    )
    width = 3.15  # names included

    def cells(self, experiment: Experiment) -> list[Cell]:
        return super().cells(experiment) if experiment.studies[self.name].figure else []

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[Cell]) -> Iterator[str]:
        if study.figure:
            yield from of_one_backbone("the layout systems, drawn,", cells)

    def numbers(self, params: Params) -> pd.DataFrame:
        return with_costs(super().numbers(params), params.cells)

    def panels(self, params: Params, numbers: pd.DataFrame) -> list[Panel]:
        require_one_backbone(numbers["backbone"].unique())
        height = self.panel_height(numbers)
        places = numbers.groupby(PLACE, sort=False)
        return [_panel(params, params.place(*key[1:]), rows, height) for key, rows in places]

    def panel_height(self, numbers: pd.DataFrame) -> float:
        """So that all labels of a panel fit beside it."""
        return max(self.height, FRAME + LINE * (numbers.groupby(PLACE).size().max() + 1))


def _panel(params: Params, title: str, rows: pd.DataFrame, height: float) -> Panel:
    usual = rows[["order", "steps"]].value_counts(sort=False).idxmax()
    looks = _looks(ordered(rows["method"]))
    points = [Point(_name(params, row, usual), looks[row.method], row) for row in rows.itertuples(index=False)]
    points.sort(key=lambda point: point.row.mean)

    def panel(axes: Axes) -> None:
        for point in points:
            _draw(axes, point)
        _passes_axis(axes, rows.loc[rows["method"] != "oracle", "passes"])
        axes.margins(y=0.08)
        axes.set_ylim(axes.get_ylim())  # stays as it is, for the names
        _add_names(axes, points, LINE / (height - FRAME))
        axes.set_xlabel("Passes a sentence")
        axes.set_ylabel(params.metric.label)
        axes.set_title(title)

    return panel


def _looks(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The paper's methods have their own in every figure; the others go through the colours, then the markers."""
    others = itertools.product(MARKERS, SERIES_COLOURS)
    looks = {}
    for name in methods:
        own = name in METHOD_COLOURS
        marker, colour = (METHOD_MARKERS[name], METHOD_COLOURS[name]) if own else next(others)
        looks[name] = {"marker": marker, "color": colour, "linestyle": "none"}
    return looks | {"oracle": {"color": METHOD_COLOURS["oracle"], "linestyle": "--", "linewidth": 0.9}}


def _draw(axes: Axes, point: Point) -> None:
    row = point.row
    if row.method == "oracle":
        axes.axhline(row.mean, **point.look)
        return
    bars = {"ecolor": faint(point.look["color"]), "elinewidth": 0.7, "capsize": 0}
    axes.errorbar(row.passes, row.mean, yerr=row.std, markersize=SIZE, **point.look, **bars)


def _name(params: Params, row: Any, usual: tuple[str, int]) -> str:
    """A system's short name, with its order and step budget where they are not those of most."""
    order, steps = usual
    known = row.method in METHODS or row.method not in params["ratios"]
    parts = [shown(params, row.method).short if known else method_in(params, row.method, row.direction)]
    if row.order not in (order, row.method):
        parts.append(row.order)
    if row.steps != steps:
        parts.append(f"T = {row.steps}")
    return ", ".join(parts)


def _add_names(axes: Axes, points: Sequence[Point], gap: float) -> None:
    """Names in a column right of the axes, in the order of their scores, with their markers, joined to their points."""
    (low, high), right = axes.get_ylim(), axes.get_xlim()[1]
    heights = spread([(point.row.mean - low) / (high - low) for point in points], gap)
    for (name, look, row), height in zip(points, heights, strict=True):
        line = {"arrowstyle": "-", "color": faint(look["color"]), "linewidth": 0.6, "relpos": (0, 0.5)}
        point = (right if row.method == "oracle" else row.passes, row.mean)
        font = {"va": "center", "fontsize": 7, "fontweight": "bold" if row.method in METHOD_COLOURS else "normal"}
        beside = {"textcoords": "axes fraction", "annotation_clip": False, "zorder": 1}
        axes.annotate(name, point, (1.17, height), arrowprops={**line, "shrinkA": 12, "shrinkB": 2}, **font, **beside)
        places = [1.1, 1.15] if row.method == "oracle" else [1.125]
        axes.plot(places, [height] * len(places), transform=axes.transAxes, clip_on=False, markersize=SIZE, **look)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Ascending heights, each moved up until it is ``gap`` above the one before; those above 1 then move down."""
    heights: list[float] = []
    for height in wanted:
        heights.append(max(height, heights[-1] + gap) if heights else height)
    ceiling = 1.0
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], ceiling)
        ceiling = heights[place] - gap
    return heights


def _passes_axis(axes: Axes, passes: pd.Series) -> None:
    from matplotlib import ticker

    if passes.max() > LOGARITHMIC * passes.min():
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(ticker.LogLocator(base=2, subs=(1.0, 1.5)))
        axes.xaxis.set_major_formatter(ticker.ScalarFormatter())
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlim(axes.get_xlim())
