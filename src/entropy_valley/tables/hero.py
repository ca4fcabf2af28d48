"""The hero figure: A, the length methods in each direction; B, EV beside autoregressive systems; C, lengths and orders.

Each direction is a place on the horizontal axis; in C the choice of the length is one, that of the order another.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from entropy_valley.config.matrix import Cell, autoregressive_cells
from entropy_valley.tables import formats, style
from entropy_valley.tables.base import FigureReport
from entropy_valley.tables.formats import RISING
from entropy_valley.tables.of_results import of_shared_seeds
from entropy_valley.tables.orders import FIXED, RUN, Orders
from entropy_valley.tables.pivot import Summary
from entropy_valley.tables.reader import Results
from entropy_valley.tables.style import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPAN, SIZE = 0.8, 4.5  # of the unit between two places, the part that the points of one fill; points of a marker
PLACE = ("backbone", "direction", "testset")
SPANS = ("length_span", "source_guided_span")
LOOKS = {name: (style.METHOD_COLOURS[name], style.METHOD_MARKERS[name]) for name in RISING}
GUIDED, CONTROL = ("SIG orders", style.SERIES_COLOURS[1], "^"), ("other orders", style.SERIES_COLOURS[2], "X")


class Series(NamedTuple):
    """The points of one system: a row of the summary for each place."""

    label: str
    colour: Any
    marker: str
    rows: Sequence[Any]


class Hero(FigureReport):
    """The main result at a glance."""

    caption = (
        "A: mean {metric} of the length methods in each direction, with standard deviations over training seeds; "
        "above the band, the share of the gap between Ratio and Oracle that Entropy-Valley closes. B, where an "
        "autoregressive backbone is configured: the same beside that backbone, fine-tuned on the same pairs, over the "
        "training seeds that both have; above the band, Entropy-Valley minus that backbone, run by run. C, where a "
        "study of reveal orders is listed: how far scores lie apart when only the length is chosen differently, in the "
        "mean over training seeds, as in the paper, and in the study's run; and when only the reveal order is, in that "
        "run, on canvases of the reference's length."
    )
    width, height = 2.1, 2.5

    @functools.cached_property
    def cells(self) -> list[Cell]:
        """The main table's cells and the autoregressive ones; those of panel C are its study's."""
        return self.main_cells + autoregressive_cells(self.experiment)

    @functools.cached_property
    def sweep(self) -> Orders | None:
        """The first study of orders that has the three lengths, too, and an order that is guided by the source."""
        for name in self.experiment.tables.studies:
            if self.experiment.studies[name].layout == "orders":
                report = Orders(self.experiment, "tables/orders", name)
                lengths = {cell.method for cell in report.cells if cell.order == report.main}
                if lengths.issuperset(RISING) and any(report.is_guided(cell.order) for cell in report.cells):
                    return report
        return None

    @property
    def read_cells(self) -> list[Cell]:
        return [*self.cells, *(self.sweep.cells if self.sweep else [])]

    def facts(self, root: str) -> dict[str, Any]:
        return {**super().facts(root), "sweep": self.sweep.facts(root) if self.sweep else None}

    def numbers(self, results: Results) -> pd.DataFrame:
        """The rows of each panel, column ``panel``."""
        denoised = [cell for cell in self.cells if not cell.autoregressive]
        panels = {"A": self.means(results, denoised)}
        if len(denoised) < len(self.cells):
            panels["B"] = self.means(results, of_shared_seeds(self.cells))
        if self.sweep:
            panels["C"] = _lengths_and_orders(self, results, self.sweep)
        return pd.concat([rows.assign(panel=name) for name, rows in panels.items()])

    def panels(self, numbers: pd.DataFrame) -> Sequence[Panel]:
        parts = dict(iter(numbers.groupby("panel")))
        panels = [functools.partial(_draw_lengths, self, parts["A"])]
        if "B" in parts:
            panels.append(functools.partial(_draw_references, self, parts["B"]))
        if self.sweep:
            panels.append(functools.partial(_draw_orders, self, self.sweep, parts["C"]))
        return panels


def _lengths_and_orders(report: Hero, results: Results, sweep: Orders) -> pd.DataFrame:
    """Scores and spans of the study's first run; and, without a ``seed``, those of the lengths in the mean over the
    runs of the main table, where it has several in the same place. The values are in ``mean``."""
    numbers = sweep.numbers(results)
    first = (numbers[list(RUN)] == numbers[list(RUN)].iloc[0]).all(axis=1)
    shown = numbers[first & numbers["metric"].isin([sweep.metric.name, *SPANS])]
    of_run = shown.rename(columns={"value": "mean"}).assign(std=float("nan"), runs=1)
    means, place = report.means(results, report.cells), list(PLACE)
    means = means[(means[place] == of_run[place].iloc[0]).all(axis=1) & means["method"].isin(RISING)]
    if means.empty or means["runs"].max() == 1:
        return of_run
    span = means.head(1).assign(method="", order="", metric=SPANS[0], mean=np.ptp(means["mean"]), std=float("nan"))
    return pd.concat([frame.reindex(columns=of_run.columns) for frame in (means, span, of_run)], ignore_index=True)


def _draw_lengths(report: Hero, rows: pd.DataFrame, axes: Axes) -> None:
    """Panel A: mean COMET with deviations over runs, and the share of Oracle's lead over Ratio that EV closes."""
    summary = Summary(rows)
    series = _lengths(report, summary)
    _points(axes, series)
    for position, (ratio, ev, oracle) in enumerate(zip(*(one.rows for one in series), strict=True)):
        _band(axes, position, ratio.mean, oracle.mean, "gap, % closed by EV")
        closed = formats.percent(ev.gap_closure_mean, ev.gap_closure_std).replace(" ±", "\n±")
        _above(axes, position, (ratio, ev, oracle), closed)
    axes.set_ylabel(report.metric.label)
    _frame(axes, [report.place(*place) for place in summary.values("place")])


def _draw_references(report: Hero, rows: pd.DataFrame, axes: Axes) -> None:
    """Panel B: EV against each autoregressive system, the other length methods faint behind it, and EV's lead."""
    beam = rows["steps"] == 0
    summary, beams = Summary(rows[~beam]), Summary(rows[beam])
    places, looks = summary.values("place"), zip(style.BACKBONE_COLOURS, style.BACKBONE_MARKERS, strict=True)
    ratio, ev, oracle = _lengths(report, summary)
    series = [ratio._replace(colour=style.faint(ratio.colour)), ev, oracle._replace(colour=style.faint(oracle.colour))]
    for backbone, look in zip(beams.values("backbone"), itertools.cycle(looks), strict=False):
        at = {"backbone": backbone, "method": beams.methods[0]}
        of_places = [beams.row(report.metric, {**at, "place": place}) for place in places]
        series.append(Series(report.backbone(backbone), *look, of_places))
    _points(axes, series)
    for position, rows in enumerate(zip(*(one.rows for one in series), strict=True)):
        _, ev, _, *others = rows
        for other in others:
            _band(axes, position, ev.mean, other.mean, "EV − AR")
        leads = [formats.signed(ev.mean - other.mean, report.metric.decimals) for other in others]
        _above(axes, position, rows, "\n".join(leads))
    _frame(axes, [report.place(*place) for place in places])


def _draw_orders(report: Hero, sweep: Orders, rows: pd.DataFrame, axes: Axes) -> None:
    """Panel C: the scores of the three lengths under the main order, in the mean over runs and in the study's run; and
    in that run those of the orders under Oracle's length."""
    of_run = rows["seed"].notna()
    seed = f"seed {rows.loc[of_run, 'seed'].iloc[0]:.0f}"
    places = {}
    for several in [True] * (not of_run.all()) + [False]:
        here = list(rows[of_run != several].itertuples())
        by_length = {row.method: row for row in here if row.order == sweep.main and row.method in RISING}
        lengths = [Series("", *LOOKS[name], [by_length[name]]) for name in RISING]
        named = f"Length\n{by_length['ev'].runs} runs" if several else f"Length\n{seed}"
        places[named] = (lengths, list(by_length.values()), _value(here, "length_span"))
    orders = [row for row in here if row.method == FIXED and row.order != sweep.main]
    orders.sort(key=lambda row: not sweep.is_guided(row.order))
    guided = [row for row in orders if sweep.is_guided(row.order)]
    others = [Series(*(GUIDED if row in guided else CONTROL), [row]) for row in orders]
    places[f"Order\n{seed}"] = (others, guided, _value(here, "source_guided_span"))
    for position, (series, _, _) in enumerate(places.values()):
        _points(axes, series, position)
    for position, (series, spanned, span) in enumerate(places.values()):
        means = [row.mean for row in spanned]
        _band(axes, position, min(means), max(means), "span")
        _above(axes, position, [one.rows[0] for one in series], formats.number(span, report.metric.decimals))
    _frame(axes, list(places))


def _value(rows: Sequence[Any], span: str) -> float:
    (value,) = (row.mean for row in rows if row.metric == span)
    return value


def _lengths(report: Hero, summary: Summary) -> list[Series]:
    """Ratio, EV and Oracle in each place."""
    places = summary.values("place")
    rows = {name: [summary.row(report.metric, {"place": at, "method": name}) for at in places] for name in RISING}
    return [Series(report.method(name).short, *LOOKS[name], rows[name]) for name in RISING]


def _points(axes: Axes, series: Sequence[Series], first: int = 0) -> None:
    """The points of a place stand around its tick, in as many equal slots; a single run has no deviation."""
    offsets = (np.arange(len(series)) - (len(series) - 1) / 2) * SPAN / len(series)
    for offset, one in zip(offsets, series, strict=True):
        at = first + np.arange(len(one.rows)) + offset
        means, stds = [row.mean for row in one.rows], [row.std for row in one.rows]
        if not all(map(math.isnan, stds)):
            axes.errorbar(at, means, yerr=stds, fmt="none", ecolor=one.colour)
        axes.plot(at, means, one.marker, label=one.label, color=one.colour, markersize=SIZE)


def _band(axes: Axes, position: float, low: float, high: float, label: str) -> None:
    """What the number above the points measures, behind them."""
    edges = (position - SPAN / 2, position + SPAN / 2)
    axes.fill_between(edges, low, high, color=style.BAND, linewidth=0, label=label)


def _above(axes: Axes, position: float, rows: Sequence[Any], text: str) -> None:
    """A text over the highest point, its marker and its deviation."""
    top = max(row.mean + (0.0 if math.isnan(row.std) else row.std) for row in rows)
    axes.annotate(
        text, (position, top), (0, SIZE / 2 + 2), textcoords="offset points", ha="center", va="bottom", fontsize=7,
        linespacing=0.9, bbox=style.ON_WHITE,
    )  # fmt: skip


def _frame(axes: Axes, places: Sequence[str]) -> None:
    """The places' names, and below them a legend of two columns: what was drawn first comes first."""
    axes.set_xticks(range(len(places)), places, fontsize=7)
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.margins(y=0.22)
    named: dict[str, Any] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        named.setdefault(label, handle)
    axes.legend(
        named.values(), named.keys(), loc="upper center", bbox_to_anchor=(0.45, -0.22), ncols=2, fontsize=7,
        handlelength=1, handletextpad=0.4, columnspacing=1,
    )  # fmt: skip
