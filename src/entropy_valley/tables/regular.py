"""The regular tables, each a short declaration: what its rows and columns are, see :mod:`pivot`.

The main table, all backbones, the whole matrix, and those of studies: step budgets, readings, a reproduction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley.config.matrix import Cell, table_cells
from entropy_valley.scoring.metrics import Metric
from entropy_valley.tables import formats
from entropy_valley.tables.base import FigureReport, Report
from entropy_valley.tables.labels import closure_title, method
from entropy_valley.tables.pivot import Entry, Regular, Summary, placed
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, TableCell
from entropy_valley.tables.style import INK, SERIES_COLOURS, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- The main table.


class Main(Regular):
    """Length methods by direction, for the main backbone. Bold is the best that could be deployed; EV is shaded."""

    caption = (
        "Main table: {metrics} of the length methods for one backbone, mean and sample standard deviation over "
        "training seeds. Gap closure is (method - Ratio) / (Oracle - Ratio), run by run, over the paper's Fixed Ratio "
        "and over the same ratio with the EOS slot that EV and Oracle have; Oracle uses the reference's length and is "
        "an upper bound."
    )

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return table_cells(self.experiment, self.experiment.tables.backbone)

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return main_metrics(self)


def main_metrics(report: Report) -> list[Metric]:
    """The metrics of the main table."""
    return report.named_metrics(*(report.experiment.tables.metrics or [report.metric.name, "bleu"]))


# --- All backbones beside each other: scores of Oracle, Ratio and EV as a table, EV's gap closure as a figure.

METHODS = ("oracle", "ratio", "ratio_eos", "ev")  # those of these that the matrix has
SPAN = 0.8  # of the unit between two backbones that their bars fill


class AllBackbones(Report):
    """The cells of the main tables of all backbones, unless the matrix has just one."""

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return table_cells(self.experiment) if len(self.experiment.matrix.backbones) > 1 else []


class CrossBackbone(AllBackbones, Regular):
    """Scores in the main metric: a group per backbone, a row per direction. Its CSV has every metric."""

    caption = (
        "The length methods on every masked-diffusion backbone and direction, in {metric}, with EV's lead over Fixed "
        "Ratio and the share of Oracle's lead that it closes, also over Fixed Ratio with an EOS slot."
    )
    keys = (("metric",), "backbone", ("place",))

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return [self.metric]

    def entries(self, summary: Summary) -> list[Entry]:
        (metric,) = self.shown_metrics
        shown = [name for name in METHODS if name in summary.methods]

        def score(at, name):
            return summary.score(metric, at | {"method": name}, shaded=name == "ev")

        def lead(at):
            return TableCell(formats.signed(summary.row(metric, at, method="ev").delta_ratio, metric.decimals))

        def closure(at, name):
            return summary.closure(metric, at | {"method": "ev"}, name, shaded=True)

        return [
            *(Entry(Column(method(name).short), functools.partial(score, name=name)) for name in shown),
            Entry(Column("Δ EV−Ratio"), lead),
            *(Entry(Column(closure_title(name)), functools.partial(closure, name=name)) for name in summary.baselines),
        ]


class CrossBackboneBleu(CrossBackbone):
    """The same in sacreBLEU."""

    caption = CrossBackbone.caption.replace("{metric}", "sacreBLEU")

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return self.named_metrics("bleu")

    def numbers(self, results: Results) -> pd.DataFrame:
        return super().numbers(results).query("metric == 'bleu'")


class CrossBackboneFigure(AllBackbones, FigureReport):
    """Bars of EV's mean gap closure in per cent with deviations over runs; no gap to close prints n/a."""

    caption = (
        "Share of the {metric} gap between Fixed Ratio and Oracle that Entropy-Valley closes, by backbone and "
        'direction. Bars are standard deviations over training seeds; "n/a": Oracle does not lead Ratio in any run.'
    )

    def numbers(self, results: Results) -> pd.DataFrame:
        return super().numbers(results).query("method == 'ev'")

    def panels(self, numbers: pd.DataFrame) -> list[Panel]:
        rows = placed(numbers)
        backbones, series = (list(dict.fromkeys(rows[key])) for key in ("backbone", "place"))
        width = SPAN / len(series)

        def panel(axes: Axes) -> None:
            for index, place in enumerate(series):
                offset = (index - (len(series) - 1) / 2) * width
                here = rows[[one == place for one in rows["place"]]]
                bars = {backbones.index(row.backbone) + offset: row for row in here.itertuples()}
                look = {"color": SERIES_COLOURS[index % len(SERIES_COLOURS)], "label": self.place(*place)}
                _bars(axes, dict(sorted(bars.items())), 0.92 * width, **look)
            axes.margins(y=0.1)
            axes.axhline(0, color=INK, linewidth=0.7)
            axes.set_xticks(range(len(backbones)), list(map(self.backbone, backbones)))
            axes.set_ylabel(f"{self.metric.label} gap closed by EV (%)")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(series), handlelength=1)

        return [panel]


def _bars(axes: Axes, bars: Mapping[float, Any], width: float, **look: str) -> None:
    """One direction's bars at their positions, each with its value or n/a."""
    means = [100 * row.gap_closure_mean for row in bars.values()]
    stds = [100 * row.gap_closure_std for row in bars.values()]
    axes.bar(list(bars), means, width, **look)
    axes.errorbar(list(bars), means, yerr=stds, fmt="none", ecolor=INK, elinewidth=0.9)
    for position, mean, std in zip(bars, means, stds, strict=True):
        text = formats.NOT_AVAILABLE if math.isnan(mean) else formats.minus(f"{mean:.1f}")
        height = 0.0 if math.isnan(mean) else max(0.0, mean + (0.0 if math.isnan(std) else std))
        axes.annotate(text, (position, height), (0, 2.5), textcoords="offset points", ha="center", fontsize=7)
