"""The step budget figure: a panel for each direction, COMET of Ratio, EV and Oracle against T."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting.methods import RISING, method
from entropy_valley.reporting.results import Place, Results, by_steps
from entropy_valley.reporting.style import METHOD_COLOURS, METHOD_MARKERS, Panel


def budget_panels(spec: Spec, summary: pd.DataFrame) -> list[Panel]:
    """Lines of means with deviations over runs, T on a logarithmic axis; one backbone, one reveal order."""
    sweep = by_steps(summary)
    places = next(iter(sweep.values())).places
    return [_panel(spec, sweep, place, last=place == places[-1]) for place in places]


def _panel(spec: Spec, sweep: Mapping[int, Results], place: Place, last: bool) -> Panel:
    lines = {name: [results.row(place, name, "comet22") for results in sweep.values()] for name in RISING}

    def panel(axes: Axes) -> None:
        for name, rows in lines.items():
            look = {"color": METHOD_COLOURS[name], "marker": METHOD_MARKERS[name], "label": method(name).short}
            deviations = [row.std for row in rows] if any(row.runs > 1 for row in rows) else None
            axes.errorbar(list(sweep), [row.mean for row in rows], yerr=deviations, markersize=4, **look)
        axes.set_xscale("log", base=2)
        axes.set_xticks(list(sweep), [str(steps) for steps in sweep])
        axes.minorticks_off()
        axes.set_xlabel("Denoising steps T")
        axes.set_ylabel(spec.metric_name)
        axes.set_title(spec.place(place.direction, place.testset))
        if last:  # beside the panels: within one it would lie over a line
            handles, labels = axes.get_legend_handles_labels()
            axes.legend(
                handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1, 0.5)
            )  # the highest line first

    return panel
