"""Mean all-mask entropy against the canvas ratio, with Fixed Ratio's ratio and EV's grid."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from entropy_valley.analysis.selector_checks import SelectorSpec
from entropy_valley.reporting.entropy_valley_figure import draw_line
from entropy_valley.reporting.formats import minus
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.style import BACKBONE_COLOURS, METHOD_COLOURS, Panel


def sweep_panels(spec: SelectorSpec, points: pd.DataFrame) -> list[Panel]:
    """A panel for each direction and test set, from :func:`analysis.valley.over_runs` of one backbone."""
    shown = points[points["axis"] == "ratios"]
    lines = [line.sort_values("at") for _, line in shown.groupby(["direction", "testset"], sort=False)]
    return [_panel(spec, line, not number) for number, line in enumerate(lines)]


def _panel(spec: SelectorSpec, line: pd.DataFrame, first: bool) -> Panel:
    direction, testset = line["direction"].iloc[0], line["testset"].iloc[0]

    def panel(axes: Axes) -> None:
        label = spec.label("backbones", line["backbone"].iloc[0])
        draw_line(axes, line, BACKBONE_COLOURS[0], ".", label)
        axes.axvline(spec.ratios[direction], color=METHOD_COLOURS["ratio"], zorder=1, label=method("ratio").short)
        _grid(axes, spec.grids[direction])
        _lowest(axes, line.loc[line["mean"].idxmin()])
        axes.set_title(spec.place(direction, testset))
        axes.set_xlabel("ratio r of the canvas")
        axes.margins(y=0.25)
        if first:
            axes.set_ylabel("mean all-mask entropy (nats)")
            axes.legend(loc="upper left", frameon=True, framealpha=1, edgecolor="none")  # over the vertical line

    return panel


def _grid(axes: Axes, ratios: list[float]) -> None:
    """EV's candidates as ticks on the axis."""
    foot = axes.get_xaxis_transform()
    colour = METHOD_COLOURS["ev"]
    axes.plot(ratios, [0.0] * len(ratios), "|", color=colour, transform=foot, markersize=12, label="EV's grid")


def _lowest(axes: Axes, point: pd.Series) -> None:
    text = minus(f"{point['mean']:.2f} at {point['at']:.2f}")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    left, right = axes.get_xlim()
    place = (point["at"] - left) / (right - left)
    side = "left" if place < 0.2 else "right" if place > 0.8 else "center"  # within the axes
    below = {"textcoords": "offset points", "ha": side, "va": "top"}
    axes.annotate(text, (point["at"], point["low"]), (0, -3), bbox=box, **below)
