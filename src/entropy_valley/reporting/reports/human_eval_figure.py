"""What annotators say of two systems, as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from entropy_valley.analysis.cells import Params
from entropy_valley.human_evaluation import statistics
from entropy_valley.reporting import formats
from entropy_valley.reporting.report import FigureReport
from entropy_valley.reporting.reports.human_eval import OfRatings, directions, pair, ratings, system_names
from entropy_valley.reporting.style import INK, METHOD_COLOURS, SERIES_COLOURS, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class HumanEvalFigure(OfRatings, FigureReport):
    """For each direction: adequacy by annotator and system, and the metric's difference beside that of adequacy."""

    caption = (
        "Human evaluation. Left: adequacy by annotator, both systems; boxes are quartiles, diamonds means. Right: a "
        "point for each sentence, difference in {metric} and mean difference in adequacy, with Spearman's correlation."
    )
    width = 1.8

    def numbers(self, params: Params) -> pd.DataFrame:
        """The ratings that are drawn."""
        read = [ratings(params, direction).assign(direction=direction) for direction in directions(params)]
        columns = [
            "direction",
            "annotator",
            "id",
            "bucket",
            "difference",
            "first_adequacy",
            "second_adequacy",
            "adequacy",
        ]
        return pd.concat(read, ignore_index=True)[columns]

    def panels(self, params: Params, numbers: pd.DataFrame) -> list[Panel]:
        drawn = []
        for name in directions(params):
            rows = numbers[numbers["direction"] == name]
            drawn += [_boxes(params, name, rows), _scatter(params, name, rows)]
        return drawn


def _boxes(params: Params, direction: str, rows: pd.DataFrame) -> Panel:
    colours = [
        METHOD_COLOURS.get(cell.method, SERIES_COLOURS[number]) for number, cell in enumerate(pair(params, direction))
    ]

    def panel(axes: Axes) -> None:
        names = [name for name in params["annotators"] if name in set(rows["annotator"])]
        for number, (system, label, colour) in enumerate(
            zip(("first", "second"), system_names(params, direction), colours, strict=True)
        ):
            given = [rows.loc[rows["annotator"] == name, f"{system}_adequacy"] for name in names]
            places = np.arange(len(names)) + (number - 0.5) * 0.36
            boxes = axes.boxplot(
                given, positions=places, widths=0.3, patch_artist=True, showmeans=True, manage_ticks=False,
                medianprops={"color": INK}, flierprops={"markersize": 2},
                meanprops={"marker": "D", "markersize": 3, "markerfacecolor": "white", "markeredgecolor": INK},
            )  # fmt: skip
            for box in boxes["boxes"]:
                box.set_facecolor(colour)
            axes.plot([], [], color=colour, linewidth=6, label=label)
        axes.set_xticks(np.arange(len(names)), names)
        axes.set_yticks(range(1, 6))
        axes.set_ylabel("adequacy")
        axes.set_title(params.label("directions", direction) + (" (simulated)" if params["simulated"] else ""))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.36), ncols=2)

    return panel


def _scatter(params: Params, direction: str, rows: pd.DataFrame) -> Panel:
    means = rows.groupby("id")[["adequacy", "difference"]].mean()
    found = statistics.correlations(means.assign(fluency=means["adequacy"]))

    def panel(axes: Axes) -> None:
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.scatter(means["difference"], means["adequacy"], s=12, color=SERIES_COLOURS[3], alpha=0.6, linewidth=0)
        first, second = system_names(params, direction)
        axes.set_xlabel(f"Δ{params.metric.label} ({first} − {second})")
        axes.set_ylabel("mean Δadequacy")
        axes.set_title(f"ρ = {formats.signed(found['adequacy_rho'], 2)}")

    return panel
