"""Gap closure of EV for every backbone and direction."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting import formats
from entropy_valley.reporting.results import Place, Results
from entropy_valley.reporting.style import INK, SERIES_COLOURS, Panel

SPAN = 0.8  # of the unit between two backbones that their bars fill


def closure_panel(spec: Spec, summary: pd.DataFrame) -> Panel:
    """Bars of EV's mean COMET gap closure in per cent with deviations over runs; no gap to close prints n/a."""
    results = Results(summary)
    series = list(dict.fromkeys((place.direction, place.testset) for place in results.places))

    def panel(axes: Axes) -> None:
        for index, (direction, testset) in enumerate(series):
            offset = (index - (len(series) - 1) / 2) * SPAN / len(series)
            places = {i: Place(name, direction, testset) for i, name in enumerate(results.backbones)}
            bars = {i + offset: place for i, place in places.items() if place in results.places}
            _bars(
                axes,
                results,
                bars,
                SPAN / len(series),
                SERIES_COLOURS[index % len(SERIES_COLOURS)],
                spec.place(direction, testset),
            )
        axes.margins(y=0.1)
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.set_xticks(range(len(results.backbones)), [spec.label("backbones", name) for name in results.backbones])
        axes.set_ylabel(f"{spec.metric_name} gap closed by EV (%)")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(series), handlelength=1)

    return panel


def _bars(axes: Axes, results: Results, bars: dict[float, Place], width: float, colour: str, label: str) -> None:
    """One direction's bars at their positions, each with its value or n/a."""
    rows = [results.row(place, "ev", "comet22") for place in bars.values()]
    means, stds = [100 * row.gap_closure_mean for row in rows], [100 * row.gap_closure_std for row in rows]
    axes.bar(list(bars), means, 0.92 * width, color=colour, label=label)
    axes.errorbar(list(bars), means, yerr=stds, fmt="none", ecolor=INK, elinewidth=0.9)
    for position, mean, std in zip(bars, means, stds, strict=True):
        text = formats.NOT_AVAILABLE if math.isnan(mean) else formats.minus(f"{mean:.1f}")
        height = 0.0 if math.isnan(mean) else max(0.0, mean + (0.0 if math.isnan(std) else std))
        axes.annotate(text, (position, height), (0, 2.5), textcoords="offset points", ha="center", fontsize=7)
