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

from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell, autoregressive_cells, study_cells
from entropy_valley.experiment.config.methods import source_guided
from entropy_valley.experiment.frames import PLACE, Frames
from entropy_valley.experiment.stats.summary import summary
from entropy_valley.experiment.tables import formats, style
from entropy_valley.experiment.tables.formats import RISING
from entropy_valley.experiment.tables.orders import FIXED, RUNS, order_numbers
from entropy_valley.experiment.tables.paired_tests import of_shared_seeds
from entropy_valley.experiment.tables.report import Data, Figure, Names, figure
from entropy_valley.experiment.tables.scores import by_keys, main_cells, places_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPAN, SIZE = 0.8, 4.5  # of the unit between two places, the part that the points of one fill; points of a marker
SPANS = ("length_span", "source_guided_span")
LOOKS = {name: (style.METHOD_COLOURS[name], style.METHOD_MARKERS[name]) for name in RISING}
GUIDED, CONTROL = ("SIG orders", style.SERIES_COLOURS[1], "^"), ("other orders", style.SERIES_COLOURS[2], "X")


class Series(NamedTuple):
    """The points of one system: a row of the summary for each place."""

    label: str
    colour: Any
    marker: str
    rows: Sequence[Any]


def lengths_cells(experiment: Experiment) -> list[Cell]:
    """The main table's and the autoregressive ones."""
    return main_cells(experiment) + autoregressive_cells(experiment)


def sweep_of(experiment: Experiment) -> Names | None:
    """The first study of orders that has the three lengths, too, and an order that is guided by the source."""
    for name in experiment.tables.studies:
        cells = study_cells(experiment, name) if experiment.studies[name].layout == "orders" else []
        lengths = {cell.method for cell in cells if cell.order == experiment.tables.order}
        # Panel C compares both choices in one study, or in none.
        if lengths.issuperset(RISING) and any(source_guided(experiment, cell.order) for cell in cells):
            return Names(experiment, cells, name)
    return None


def hero_cells(experiment: Experiment) -> list[Cell]:
    sweep = sweep_of(experiment)
    return list(dict.fromkeys([*lengths_cells(experiment), *(sweep.listed if sweep else [])]))


@figure(
    "A: mean {metric} of the length methods in each direction, with standard deviations over training seeds; "
    "above the band, the share of the gap between Ratio and Oracle that Entropy-Valley closes. B, where an "
    "autoregressive backbone is configured: the same beside that backbone, fine-tuned on the same pairs, over the "
    "training seeds that both have; above the band, Entropy-Valley minus that backbone, run by run. C, where a "
    "study of reveal orders is listed: how far scores lie apart when only the length is chosen differently, in the "
    "mean over training seeds, as in the paper, and in the study's run; and when only the reveal order is, in that "
    "run, on canvases of the reference's length. That length is not an upper bound.",
    hero_cells,
)
def hero(data: Data) -> Figure:
    """The main result at a glance. The numbers have the rows of each panel, column ``panel``."""
    names = Names(data.experiment, lengths_cells(data.experiment))
    own = data.of(names.listed, names)
    # Panel A is of the diffusion model alone.
    denoised = [cell for cell in names.listed if not cell.autoregressive]
    rows = summary(own.of(denoised), names.metrics[:1])
    parts, panels = [rows.assign(panel="A")], [functools.partial(_draw_lengths, names, rows)]
    # Without an autoregressive backbone there is nothing for panel B.
    if len(denoised) < len(names.listed):
        # A lead run by run needs both runs.
        rows = summary(Frames(own.sentences, of_shared_seeds(own.cells)), names.metrics[:1])
        parts.append(rows.assign(panel="B"))
        panels.append(functools.partial(_draw_references, names, rows))
    if sweep := sweep_of(data.experiment):
        rows = _lengths_and_orders(data.of(sweep.listed, sweep), summary(own, names.metrics[:1]))
        parts.append(rows.assign(panel="C"))
        panels.append(functools.partial(_draw_orders, sweep, rows))
    return Figure(pd.concat(parts), panels, width=2.1, height=2.5)


def _lengths_and_orders(sweep: Data, main: pd.DataFrame) -> pd.DataFrame:
    """Scores and spans of the study's first run; and, without a ``seed``, those of the lengths in the mean over the
    runs of the ``main`` table, where it has several in the same place. The values are in ``mean``."""
    numbers = order_numbers(sweep)
    # The orders were decoded in one run: a span over several would mix two causes.
    first = (numbers[RUNS] == numbers[RUNS].iloc[0]).all(axis=1)
    shown = numbers[first & numbers["metric"].isin([sweep.metric.name, *SPANS])]
    of_run = shown.rename(columns={"value": "mean"}).assign(std=math.nan, runs=1)
    place = ["backbone", *PLACE]
    over = main[(main[place] == of_run[place].iloc[0]).all(axis=1) & main["method"].isin(RISING)]
    # A mean over one run would be the same points twice.
    if over.empty or over["runs"].max() == 1:
        return of_run
    span = over.head(1).assign(method="", order="", metric=SPANS[0], mean=np.ptp(over["mean"]), std=math.nan)
    return pd.concat([frame.reindex(columns=of_run.columns) for frame in (over, span, of_run)], ignore_index=True)


def _draw_lengths(names: Names, numbers: pd.DataFrame, axes: Axes) -> None:
    """Panel A: mean COMET with deviations over runs, and the share of Oracle's lead over Ratio that EV closes."""
    series = _lengths(names, numbers)
    _points(axes, series)
    for position, (ratio, ev, oracle) in enumerate(zip(*(one.rows for one in series), strict=True)):
        _band(axes, position, ratio.mean, oracle.mean, "gap, % closed by EV")
        closed = formats.percent(ev.gap_closure_mean, ev.gap_closure_std).replace(" ±", "\n±")
        _above(axes, position, (ratio, ev, oracle), closed)
    axes.set_ylabel(names.metric.label)
    _frame(axes, [names.place(*place) for place in places_of(numbers)])


def _draw_references(names: Names, numbers: pd.DataFrame, axes: Axes) -> None:
    """Panel B: EV against each autoregressive system, the other length methods faint behind it, and EV's lead."""
    beams, places = numbers[numbers["steps"] == 0], places_of(numbers)
    ratio, ev, oracle = _lengths(names, numbers[numbers["steps"] > 0])
    # Ratio and Oracle are for orientation here.
    series = [ratio._replace(colour=style.faint(ratio.colour)), ev, oracle._replace(colour=style.faint(oracle.colour))]
    # A config may name more backbones than there are colours.
    looks = itertools.cycle(zip(style.BACKBONE_COLOURS, style.BACKBONE_MARKERS, strict=True))
    for (backbone, rows), look in zip(beams.groupby("backbone", sort=False), looks, strict=False):
        of_place = by_keys(rows, *PLACE, "method")
        method = rows["method"].iloc[0]
        series.append(Series(names.backbone(backbone), *look, [of_place[*place, method] for place in places]))
    _points(axes, series)
    for position, rows in enumerate(zip(*(one.rows for one in series), strict=True)):
        _, ev, _, *others = rows
        for other in others:
            _band(axes, position, ev.mean, other.mean, "EV − AR")
        leads = [formats.signed(ev.mean - other.mean, names.metric.decimals) for other in others]
        _above(axes, position, rows, "\n".join(leads))
    _frame(axes, [names.place(*place) for place in places])


def _draw_orders(sweep: Names, numbers: pd.DataFrame, axes: Axes) -> None:
    """Panel C: the scores of the three lengths under the main order, in the mean over runs and in the study's run; and
    in that run those of the orders under Oracle's length."""
    main = sweep.experiment.tables.order
    of_run = numbers["seed"].notna()
    seed = f"seed {numbers.loc[of_run, 'seed'].iloc[0]:.0f}"
    places = {}
    # The mean over runs first, as in the paper.
    for several in [True] * (not of_run.all()) + [False]:
        here = [*numbers[of_run != several].itertuples()]
        by_length = {row.method: row for row in here if row.order == main and row.method in RISING}
        lengths = [Series("", *LOOKS[name], [by_length[name]]) for name in RISING]
        title = f"Length\n{by_length['ev'].runs} runs" if several else f"Length\n{seed}"
        span = {row.metric: row.mean for row in here}
        places[title] = (lengths, [*by_length.values()], span["length_span"])
    # The main order is among the lengths already.
    orders = [row for row in here if row.method == FIXED and row.order != main]
    guided = [row for row in orders if source_guided(sweep.experiment, row.order)]
    series = [Series(*GUIDED, [row]) for row in guided]
    series += [Series(*CONTROL, [row]) for row in orders if row not in guided]
    places[f"Order\n{seed}"] = (series, guided, span["source_guided_span"])
    for position, (series, _, _) in enumerate(places.values()):
        _points(axes, series, position)
    for position, (series, spanned, value) in enumerate(places.values()):
        scores = [row.mean for row in spanned]
        _band(axes, position, min(scores), max(scores), "span")
        _above(axes, position, [one.rows[0] for one in series], formats.number(value, sweep.metric.decimals))
    _frame(axes, [*places])


def _lengths(names: Names, numbers: pd.DataFrame) -> list[Series]:
    """Ratio, EV and Oracle in each place."""
    of_place, places = by_keys(numbers, *PLACE, "method"), places_of(numbers)
    return [
        Series(names.method(name).short, *LOOKS[name], [of_place[*place, name] for place in places]) for name in RISING
    ]


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
    # The text stands above the error bar.
    top = max(row.mean + (0.0 if math.isnan(row.std) else row.std) for row in rows)
    axes.annotate(
        text, (position, top), (0, SIZE / 2 + 2), textcoords="offset points", ha="center", va="bottom",
        fontsize="small", linespacing=0.9, bbox=style.ON_WHITE,
    )  # fmt: skip


def _frame(axes: Axes, places: Sequence[str]) -> None:
    """The places' names, and below them a legend of two columns: what was drawn first comes first."""
    axes.set_xticks(range(len(places)), places, fontsize="small")
    axes.set_xlim(-0.5, len(places) - 0.5)
    # The numbers above the points need room.
    axes.margins(y=0.22)
    named: dict[str, Any] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        # The band of each place has the same label.
        named.setdefault(label, handle)
    axes.legend(
        named.values(), named.keys(), loc="upper center", bbox_to_anchor=(0.45, -0.22), ncols=2, fontsize="small",
        handlelength=1, handletextpad=0.4, columnspacing=1,
    )  # fmt: skip
