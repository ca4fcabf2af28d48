"""What stands behind EV's choices: a study's table with a group of rows for each check, and the sweep as a figure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley.analysis.selector_checks import METHOD, PLACE, SelectorParams, measure
from entropy_valley.analysis.valley import curves, over_runs
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.experiment.params.methods import selector_settings
from entropy_valley.experiment.schema import Study
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats
from entropy_valley.reporting.labels import method, ordered
from entropy_valley.reporting.report import OfStudy, TableReport, diagnostics_files, of_one_backbone
from entropy_valley.reporting.reports.entropy_valley import EntropyValley, draw_line
from entropy_valley.reporting.style import BACKBONE_COLOURS, METHOD_COLOURS, Panel
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table
from entropy_valley.scoring.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Mapping[str, float]
COMPARED = {"ev_reassigned": "EV − reassigned ratios", "ev_reassigned_deciles": "EV − reassigned within deciles of |x|"}


def _with_grids(experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
    """EV's grid in each direction."""
    directions = dict.fromkeys(cell.run.direction for cell in cells)
    return {"grids": {name: selector_settings(experiment, "ev", name)["ratios"] for name in directions}}


class Checks(OfStudy, TableReport):
    """Is it the source that chooses EV's canvas? Its sweep, its ratios, its controls."""

    caption = (
        "The dense sweep's lowest entropy and its ends, the ratios that EV takes, EV's other scores, and EV's lead "
        "over canvases whose ratios were dealt to other sentences."
    )
    parsed = SelectorParams

    def inputs(self, experiment: Experiment) -> list[str]:
        return [*super().inputs(experiment), *diagnostics_files(experiment, self.cells(experiment))]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return _with_grids(experiment, cells)

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        yield from of_one_backbone("the layout checks", cells)
        if METHOD not in {cell.method for cell in cells}:
            yield f"the layout checks is of the method {METHOD}; add it"

    def numbers(self, params: SelectorParams) -> pd.DataFrame:
        return measure(params)

    def table(self, params: SelectorParams, numbers: pd.DataFrame) -> Table:
        """A column for each direction; a check that was not run has no rows."""
        places = list(dict.fromkeys(numbers[list(PLACE)].itertuples(index=False, name=None)))
        heads = (Column("Check", align="l"), Column("", align="l"))
        columns = (*heads, *(Column(params.place(*place)) for place in places))
        tests, metric = _of(numbers, "test"), params.metric
        score = functools.partial(_score, metric)
        found = [
            ("Mean all-mask entropy by ratio", _rows(places, _of(numbers, "sweep"), _entropy)),
            ("Ratios that EV takes", _rows(places, _of(numbers, "chosen"), _share)),
            (metric.label, _rows(places, _of(numbers, "score"), score, label=lambda name: method(name).label)),
        ]
        for name, runs in tests.groupby("item", sort=False):
            found.append((COMPARED.get(name) or f"EV − {method(name).label}", _by_seed(places, runs, metric)))
        groups = tuple(Group(label, rows) for label, rows in found if rows)
        return Table(columns, (Section(groups),), _notes(params, tests))


class SelectorChecksFigure(EntropyValley):
    """The main backbone's mean all-mask entropy against the canvas ratio, a panel for each direction and test set."""

    caption = (
        "Mean all-mask entropy of the main backbone against the ratio of canvas to source tokens, with a band as in "
        "the figure entropy_valley. Ticks: EV's candidates; the vertical line: Fixed Ratio's ratio."
    )
    parsed = SelectorParams

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        main = experiment.tables.backbone
        return [cell for cell in super().cells(experiment) if cell.run.backbone == main]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return _with_grids(experiment, cells)

    def numbers(self, params: SelectorParams) -> pd.DataFrame:
        points = over_runs(curves(params.cells))
        return points[points["axis"] == "ratios"].drop(columns="lowest", errors="ignore")

    def panels(self, params: SelectorParams, numbers: pd.DataFrame) -> list[Panel]:
        lines = numbers.groupby(["direction", "testset"], sort=False)
        return [_panel(params, line, not number) for number, (_, line) in enumerate(lines)]


def _of(numbers: pd.DataFrame, check: str) -> pd.DataFrame:
    return numbers[numbers["check"] == check]


def _rows(
    places: Sequence[tuple[str, str]],
    numbers: pd.DataFrame,
    text: Callable[[Numbers], str],
    label: Callable[[str], str] = str,
) -> tuple[Row, ...]:
    """A row for each item: its label, then the text of its numbers in each place; a dash where there are none."""
    rows = []
    for item in ordered(numbers["item"]):
        known = numbers[numbers["item"] == item]
        values = [_values(known, place) for place in places]
        texts = [text(one) if one else formats.NONE for one in values]
        rows.append(Row((Cell(label(item)), *map(Cell, texts))))
    return tuple(rows)


def _by_seed(places: Sequence[tuple[str, str]], tests: pd.DataFrame, metric: Metric) -> tuple[Row, ...]:
    """A row for each run: runs are never pooled."""
    by_seed = tests.assign(item=tests["seed"].map(lambda seed: f"seed {seed:.0f}"))
    return _rows(places, by_seed, functools.partial(_test, metric))


def _values(numbers: pd.DataFrame, place: tuple[str, str]) -> dict[str, float]:
    here = numbers[(numbers["direction"] == place[0]) & (numbers["testset"] == place[1])]
    return dict(zip(here["metric"], here["value"], strict=True))


def _entropy(values: Numbers) -> str:
    return f"{values['ratio']:.2f}: {values['entropy']:.4f}"


def _share(values: Numbers) -> str:
    return f"{values['ratio']:.2f}: {values['share']:.1%} ({values['count']:.0f})"


def _score(metric: Metric, values: Numbers) -> str:
    return formats.mean_std(values["mean"], values["std"], metric.decimals)


def _test(metric: Metric, values: Numbers) -> str:
    return f"{formats.lead(values, metric)}, {formats.p_statement(values['p_two_sided'], int(values['resamples']))}"


def _notes(params: SelectorParams, tests: pd.DataFrame) -> tuple[Note, ...]:
    """The setting, and how to read each check."""
    cell = params.cells[0]
    counts = tests.loc[(tests["metric"] == "systems") & tests["item"].isin(COMPARED), "value"].unique()
    permutations = " or ".join(f"{count:.0f}" for count in counts)
    reassigned = (
        "Reassigned: each sentence gets the ratio L/|x| that EV took for another; its score is the mean over "
        f"{permutations} permutations, each decoded."
    )
    return (
        Note(f"{params.label('backbones', cell.backbone)}; reveal order {cell.order}, T = {cell.steps}."),
        Note("Ratio: entropy (nats), the mean over sentences and runs: at the sweep's ends and where it is lowest."),
        Note("Ratio: share of sentences (number, mean over runs); of ratios with one canvas, the smallest counts."),
        *([Note(reassigned)] if len(counts) else []),
        Note("Differences: mean over sentences [95% bootstrap interval], two-sided p, run by run."),
    )


def _panel(params: SelectorParams, line: pd.DataFrame, first: bool) -> Panel:
    direction, testset = line["direction"].iloc[0], line["testset"].iloc[0]

    def panel(axes: Axes) -> None:
        label = params.label("backbones", line["backbone"].iloc[0])
        draw_line(axes, line, BACKBONE_COLOURS[0], ".", label)
        ratio, look = params.ratios["ratio"][direction], {"color": METHOD_COLOURS["ratio"], "zorder": 1}
        axes.axvline(ratio, label=method("ratio").short, **look)
        _draw_grid(axes, params.grids[direction])
        _lowest(axes, line.loc[line["mean"].idxmin()])
        axes.set_title(params.place(direction, testset))
        axes.set_xlabel("ratio r of the canvas")
        axes.margins(y=0.25)
        if first:
            axes.set_ylabel("mean all-mask entropy (nats)")
            axes.legend(loc="upper left", frameon=True, framealpha=1, edgecolor="none")  # over the vertical line

    return panel


def _draw_grid(axes: Axes, ratios: list[float]) -> None:
    """EV's candidates as ticks on the axis."""
    look = {"color": METHOD_COLOURS["ev"], "markersize": 12, "label": "EV's grid"}
    axes.plot(ratios, [0.0] * len(ratios), "|", transform=axes.get_xaxis_transform(), **look)


def _lowest(axes: Axes, point: pd.Series) -> None:
    text = formats.minus(f"{point['mean']:.2f} at {point['at']:.2f}")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    left, right = axes.get_xlim()
    place = (point["at"] - left) / (right - left)
    side = "left" if place < 0.2 else "right" if place > 0.8 else "center"  # within the axes
    below = {"textcoords": "offset points", "ha": side, "va": "top"}
    axes.annotate(text, (point["at"], point["low"]), (0, -3), bbox=box, **below)
