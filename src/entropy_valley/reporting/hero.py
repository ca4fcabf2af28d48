"""The hero figure's panels; A is mean COMET of Ratio, EV and Oracle in each direction."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting import formats
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.results import Place, Results
from entropy_valley.reporting.style import BAND, METHOD_COLOURS, METHOD_MARKERS, Panel

METHODS = ("ratio", "ev", "oracle")  # rising from left to right
OFFSET = 0.24  # between neighbouring methods; directions stand 1 apart


def length_panel(spec: Spec, summary: pd.DataFrame) -> Panel:
    """Panel A: mean COMET with deviations over runs, and the share of Oracle's lead over Ratio that EV closes."""
    results = Results(summary)
    results.require_one_backbone()

    def panel(axes: Axes) -> None:
        for position, place in enumerate(results.places):
            _gap(axes, results, place, position)
        for index, name in enumerate(METHODS):
            _points(axes, results, name, (index - 1) * OFFSET)
        labels = [spec.place(place.direction, place.testset) for place in results.places]
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.margins(y=0.15)
        axes.set_ylabel(spec.metric_name)
        _legend(axes)

    return panel


def _points(axes: Axes, results: Results, name: str, offset: float) -> None:
    rows = [results.row(place, name, "comet22") for place in results.places]
    axes.errorbar(
        [position + offset for position in range(len(rows))],
        [row.mean for row in rows],
        yerr=[row.std for row in rows],
        fmt=METHOD_MARKERS[name],
        color=METHOD_COLOURS[name],
        markersize=5,
        label=method(name).short,
    )


def _legend(axes: Axes) -> None:
    """One line above the panel; matplotlib lists the band first, it reads better last."""
    (band, *methods), (gap, *names) = axes.get_legend_handles_labels()
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4}
    axes.legend([*methods, band], [*names, gap], handlelength=1, handletextpad=0.4, columnspacing=1.2, **place)


def _gap(axes: Axes, results: Results, place: Place, position: int) -> None:
    """The span from Ratio to Oracle behind the points, and what EV closes of it above them."""
    ratio, ev, oracle = (results.row(place, name, "comet22") for name in METHODS)
    span = [position - 1.5 * OFFSET, position + 1.5 * OFFSET]
    label = "" if position else "gap, % closed by EV"
    axes.fill_between(span, ratio.mean, oracle.mean, color=BAND, linewidth=0, label=label)
    top = max(row.mean + (0.0 if math.isnan(row.std) else row.std) for row in (ratio, ev, oracle))
    closure = formats.percent(ev.gap_closure_mean, ev.gap_closure_std)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.annotate(closure, (position, top), (0, 4), textcoords="offset points", ha="center", bbox=box)
