"""The entropies of all-mask canvases by their length, as a figure; and what stands behind EV's choices among them: a
study's table with a group of rows for each check, and the sweep of ratios as a figure."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from entropy_valley.experiment.config.matrix import Cell, valley_cells
from entropy_valley.experiment.config.methods import grid
from entropy_valley.experiment.frames import PLACE
from entropy_valley.experiment.stats.significance import paired_test
from entropy_valley.experiment.stats.summary import CERTAIN, run_by_run
from entropy_valley.experiment.tables import footnotes, formats, style
from entropy_valley.experiment.tables.report import (
    Data,
    Figure,
    Names,
    Row,
    Shown,
    aligned,
    diagnostics_files,
    figure,
    table,
)
from entropy_valley.lengths.base import candidate_length

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- Mean entropy around the reference's length.

POINT = ["backbone", *PLACE, "axis", "at"]


@figure(
    "Mean entropy of all-mask canvases at slots beside the reference's length, one line per backbone: a "
    "diagnostic that sees the reference. Bands are standard deviations over training seeds; for a single run, 95 % "
    "intervals of the mean over sentences.",
    valley_cells,
    files=diagnostics_files,
    scored=False,
)
def entropy_valley(data: Data) -> Figure:
    """A panel for each direction and test set, a line for each backbone.

    All sentences that have a canvas at an offset count: at negative ones those of short references drop out, and the
    CSV has the same curve for the sentences that never do (axis ``offsets_complete``).
    """
    numbers = curves(data, "offsets", "offsets_complete")
    panels: list[style.Panel] = []
    for place, lines in numbers.query("axis == 'offsets'").groupby(PLACE, sort=False):
        panels.append(functools.partial(_lines, data, place, lines, not panels))
    return Figure(numbers, panels, width=2.1)


def _lines(names: Names, place: Any, shown: pd.DataFrame, first: bool, axes: Axes) -> None:
    """One direction's lines; the first panel has the legend and names the vertical axis, and the horizontal one for
    all."""

    from matplotlib import ticker

    axes.axvline(0, color=style.GRID, linewidth=1.5)
    looks = itertools.cycle(zip(style.BACKBONE_COLOURS, style.BACKBONE_MARKERS, strict=True))
    for (backbone, line), (colour, marker) in zip(shown.groupby("backbone", sort=False), looks, strict=False):
        draw_line(axes, line, colour, marker, names.backbone(backbone))
    axes.set_title(names.place(*place))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.margins(y=0.1)
    if first:
        axes.set_ylabel("mean all-mask entropy (nats)")
        axes.figure.supxlabel("canvas − reference length (slots)", fontsize=axes.xaxis.label.get_fontsize())
        style.legend_above(axes)


def curves(data: Data, *axes: str) -> pd.DataFrame:
    """One row per axis (``offsets``, ``offsets_complete``, ``ratios``) and place on it (``at``: a slot offset from the
    reference, or a ratio), see :func:`over_runs`: ``mean`` is an entropy in nats, ``mean_length`` in slots."""
    rows = []
    # Cells of one run and test set share their curves.
    for cell in {(cell.run, cell.testset): cell for cell in data.listed}.values():
        content = data.files.diagnostics(cell, "valley")
        run = {key: getattr(cell, key) for key in ("backbone", *PLACE, "seed")}
        # One frame for all axes: a column says which.
        rows += [run | {"axis": axis, **point} for axis in axes for point in content[axis]]
    return over_runs(pd.DataFrame(rows).astype({"standard_error": float}))


def over_runs(points: pd.DataFrame) -> pd.DataFrame:
    """Curves averaged over seeds, one row per POINT: ``mean``, ``low``, ``high``, ``spread``, ``runs``, and the means
    of ``sentences``, ``mean_length`` and ``lowest`` (a share, on the axis of complete sentences).

    ``spread`` says what lies between low and high: the sample standard deviation over runs on either side; or, for a
    single run, 95 % of the mean over its sentences (normal approximation).
    """
    groups, averaged = points.groupby(POINT, sort=False), ("sentences", "mean_length", "lowest")
    runs, centre = groups.size(), groups["mean"].mean()
    # One run says nothing of others, so its sentences have to do.
    reach = groups["mean"].std().where(runs > 1, CERTAIN * groups["standard_error"].first())
    spread = np.where(runs > 1, "std over runs", "95% of the mean over sentences")
    band = {"mean": centre, "low": centre - reach, "high": centre + reach, "spread": spread, "runs": runs}
    averages = groups[[name for name in averaged if name in points]].mean()
    return pd.DataFrame(band).join(averages).reset_index()


def draw_line(axes: Axes, line: pd.DataFrame, colour: str, marker: str, label: str) -> None:
    """A curve with its band, whatever the band is."""
    # A line joins its points in their order.
    line = line.sort_values("at")
    axes.fill_between(line["at"], line["low"], line["high"], color=colour, alpha=0.2, linewidth=0)
    axes.plot(line["at"], line["mean"], color=colour, marker=marker, markersize=3, label=label)


# --- What stands behind EV's choices.

METHOD = "ev"
ALTERNATIVES = ("ev_sum", "ev_normalised", "ev_median")
COMPARED = {"ev_reassigned": "EV − reassigned ratios", "ev_reassigned_deciles": "EV − reassigned within deciles of |x|"}


def check_numbers(data: Data) -> pd.DataFrame:
    """Columns: those of PLACE, ``seed`` (none: over seeds), ``check``, ``item``, ``metric``, ``value``.

    Checks: ``sweep`` (items first, lowest, last; metrics ratio and entropy), ``chosen`` (item: the place of a nominal
    ratio in EV's grid, from 1; metrics ratio, share and count, the mean over seeds), ``score`` (item: a method; mean,
    std) and ``test`` (item: what EV is compared with; the values of :func:`paired_test`, run by run).
    """
    rows: list[tuple[Any, ...]] = []

    def add(check: str, place: Any, seed: Any, item: object, **values: Any) -> None:
        rows.extend((*place, seed, check, str(item), *number) for number in values.items())

    for place, line in curves(data, "ratios").groupby(PLACE, sort=False):
        line = line.sort_values("at")
        # A valley has its lowest point between its ends.
        named = {"first": line.iloc[0], "lowest": line.loc[line["mean"].idxmin()], "last": line.iloc[-1]}
        for item, point in named.items():
            add("sweep", place, None, item, ratio=point["at"], entropy=point["mean"], sentences=point["sentences"])

    ev = [cell for cell in data.listed if cell.method == METHOD]
    for place in dict.fromkeys((cell.direction, cell.testset) for cell in ev):
        ratios = grid(data.experiment, METHOD, place[0])
        runs = [nominal_ratios(data, cell, ratios) for cell in ev if (cell.direction, cell.testset) == place]
        # Ratios that no sentence takes have a row, too.
        for number, ratio in enumerate(ratios, 1):
            taken = np.array(runs) == ratio
            add("chosen", place, None, number, ratio=ratio, count=taken.sum() / len(runs), share=taken.mean())

    # A permutation is one draw of a system: its score alone says nothing.
    cells = data.cells[data.cells["method"].isin([METHOD, *ALTERNATIVES])]
    for (*place, method), of_method in cells.groupby([*PLACE, "method"], sort=False):
        values = of_method[data.metric.name]
        add("score", place, None, method, mean=values.mean(), std=values.std(), runs=len(values))

    how = data.statistics
    for run, of_run in run_by_run(data.sentences, data.metric.name):
        for name in (*COMPARED, *ALTERNATIVES):
            # The mean over permutations is one system: each alone is one draw of it.
            methods = [method for method in of_run if re.fullmatch(rf"{name}(_\d+)?", method)]
            if methods:
                test = paired_test(of_run[METHOD], of_run[methods].mean(axis=1), how)
                place = (run["direction"], run["testset"])
                add("test", place, run["seed"], name, **test, bootstrap_seed=how.seed, systems=len(methods))
    return pd.DataFrame(rows, columns=[*PLACE, "seed", "check", "item", "metric", "value"])


def nominal_ratios(data: Data, cell: Cell, ratios: Sequence[float]) -> list[float]:
    """Of each sentence of an EV cell the ratio of an ascending grid whose canvas it has; the first that gives it."""
    tokens = data.files.diagnostics(cell, "valley")["source_tokens"]
    rows, taken = data.of([cell]).sentences, []
    for name, canvas in zip(rows["id"], rows["canvas"], strict=True):
        # In binary floating point a product may be a slot less than the exact one.
        fitting = (ratio for ratio in ratios if candidate_length(ratio, tokens[name]) >= canvas["length"])
        taken.append(next(fitting))
    return taken


@table(
    "The dense sweep's lowest entropy and its ends, the ratios that EV takes, EV's other scores, and EV's lead over "
    "canvases whose ratios were given to other sentences.",
    columns=("canvas",),
    files=diagnostics_files,
    tells=(),
    needs=(METHOD,),
)
def checks(data: Data) -> Shown:
    """A column for each direction; a check that was not run has no rows."""
    numbers = check_numbers(data)
    places = [place for place, _ in numbers.groupby(PLACE, sort=False)]  # as the config has them
    lines: dict[tuple[str, str], dict[Any, str]] = {}
    # The checks stand in the order in which a reader asks.
    keys = ["check", "item", "seed", *PLACE]
    for (check, item, seed, *place), of_line in numbers.groupby(keys, sort=False, dropna=False):
        values = dict(zip(of_line["metric"], of_line["value"], strict=True))
        part, label, text = line_of(data, check, item, seed, values)
        lines.setdefault((part, label), {})[tuple(place)] = text
    shown = [Row([*labels, *(line.get(place, formats.NONE) for place in places)]) for labels, line in lines.items()]
    columns = aligned("l", "Check", "") + aligned("c", *(data.place(*place) for place in places))
    notes = [
        footnotes.setting(data),
        "Entropy by ratio: the ratio, then the entropy in nats, mean over sentences and runs; at both ends of "
        "the sweep and where it is lowest.",
        "Ratios that EV takes: the ratio, then the share of sentences (their number, mean over runs). Of ratios "
        "with the same canvas, the smallest counts.",
    ]
    counts = numbers.loc[(numbers["metric"] == "systems") & numbers["item"].isin(COMPARED), "value"].unique()
    if len(counts):
        # Runs may differ in how many permutations they have.
        permutations = " or ".join(f"{count:.0f}" for count in counts)
        notes.append(
            "Reassigned: each sentence gets the ratio L/|x| that EV took for another; its score is the mean over "
            f"{permutations} permutations, each decoded."
        )
    notes.append("Differences: mean over sentences [95 % bootstrap interval], two-sided p, run by run.")
    return Shown(numbers, columns, shown, notes, labels=2)


def line_of(names: Names, check: str, item: str, seed: float, values: Mapping[str, float]) -> tuple[str, str, str]:
    """The check, the label of a row, and its text in one place."""
    if check == "sweep":
        return "Mean all-mask entropy by ratio", item, f"{values['ratio']:.2f}: {values['entropy']:.4f}"
    if check == "chosen":
        text = f"{values['ratio']:.2f}: {values['share']:.1%} ({values['count']:.0f})"
        return "Ratios that EV takes", item, text
    if check == "score":
        text = formats.mean_std(values["mean"], values["std"], names.metric.decimals)
        return names.metric.label, names.method(item).label, text
    p = formats.p_statement(values["p_two_sided"], int(values["resamples"]))
    compared = COMPARED.get(item) or f"EV − {names.method(item).label}"
    return compared, f"seed {seed:.0f}", f"{formats.lead(values, names.metric)}, {p}"


# --- The sweep as a figure.


@figure(
    "Mean all-mask entropy of the main backbone against the ratio of canvas to source tokens, with a band as in the "
    "figure entropy_valley. Ticks: EV's candidates; the vertical line: Fixed Ratio's ratio.",
    lambda experiment: [cell for cell in valley_cells(experiment) if cell.backbone == experiment.tables.backbone],
    files=diagnostics_files,
    scored=False,
)
def selector_checks(data: Data) -> Figure:
    """A panel for each direction and test set."""
    numbers = curves(data, "ratios")
    panels: list[style.Panel] = []
    for place, line in numbers.groupby(PLACE, sort=False):
        panels.append(functools.partial(_sweep, data, place, line, not panels))
    return Figure(numbers, panels, width=2.1)


def _sweep(names: Names, place: Any, line: pd.DataFrame, first: bool, axes: Axes) -> None:
    draw_line(axes, line, style.BACKBONE_COLOURS[0], ".", names.backbone(names.experiment.tables.backbone))
    # A fixed ratio does not move with the valley.
    (ratio,) = grid(names.experiment, "ratio", place[0])
    axes.axvline(ratio, label=names.method("ratio").short, color=style.METHOD_COLOURS["ratio"], zorder=1)
    ratios = grid(names.experiment, METHOD, place[0])
    axes.plot(
        ratios, [0.0] * len(ratios), "|", transform=axes.get_xaxis_transform(), color=style.METHOD_COLOURS["ev"],
        markersize=12, label="EV's grid",
    )  # fmt: skip
    lowest = line.loc[line["mean"].idxmin()]
    left, right = axes.get_xlim()
    share = (lowest["at"] - left) / (right - left)
    side = "left" if share < 0.2 else "right" if share > 0.8 else "center"  # within the axes
    axes.annotate(
        formats.minus(f"{lowest['mean']:.2f} at {lowest['at']:.2f}"), (lowest["at"], lowest["low"]), (0, -3),
        textcoords="offset points", ha=side, va="top", bbox=style.ON_WHITE,
    )  # fmt: skip
    axes.set_title(names.place(*place))
    axes.set_xlabel("ratio r of the canvas")
    # The text of the lowest point needs room below the curve.
    axes.margins(y=0.25)
    if first:
        axes.set_ylabel("mean all-mask entropy (nats)")
        style.legend_above(axes)
