"""The entropy valley: mean entropy of all-mask canvases around the reference's length."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting.style import BACKBONE_COLOURS, BACKBONE_MARKERS, GRID, Panel


def valley_panels(spec: Spec, points: pd.DataFrame) -> list[Panel]:
    """A panel for each direction and test set, a line for each backbone, from :func:`analysis.valley.over_runs`.

    All sentences that have a canvas at an offset count: at negative ones those of short references drop out, and the
    CSV has the same curve for the sentences that never do (axis ``offsets_complete``).
    """
    shown = points[points["axis"] == "offsets"]
    places = list(dict.fromkeys(zip(shown["direction"], shown["testset"], strict=True)))
    return [
        _panel(spec, shown[(shown["direction"] == direction) & (shown["testset"] == testset)], not number)
        for number, (direction, testset) in enumerate(places)
    ]


def _panel(spec: Spec, shown: pd.DataFrame, first: bool) -> Panel:
    """One direction's lines; only the first panel has a legend and names its vertical axis."""
    direction, testset = shown["direction"].iloc[0], shown["testset"].iloc[0]

    def panel(axes: Axes) -> None:
        axes.axvline(0, color=GRID, linewidth=1.5)
        for number, (backbone, line) in enumerate(shown.groupby("backbone", sort=False)):
            style = number % len(BACKBONE_COLOURS)
            draw_line(axes, line, BACKBONE_COLOURS[style], BACKBONE_MARKERS[style], spec.label("backbones", backbone))
        axes.set_title(spec.place(direction, testset))
        axes.set_xlabel("slots beside the reference length")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.1)
        if first:
            axes.set_ylabel("mean all-mask entropy (nats)")
            axes.legend(loc="upper left")

    return panel


def draw_line(axes: Axes, line: pd.DataFrame, colour: str, marker: str, label: str) -> None:
    """A curve with its band, whatever the band is."""
    line = line.sort_values("at")
    axes.fill_between(line["at"], line["low"], line["high"], color=colour, alpha=0.2, linewidth=0)
    axes.plot(line["at"], line["mean"], color=colour, marker=marker, markersize=3, label=label)
