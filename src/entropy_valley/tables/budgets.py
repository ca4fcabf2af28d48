"""A study of step budgets: scores of Oracle, EV and Ratio at each T, and how much of the gap EV closes there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.config.schema import Study
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import with_costs
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import FigureReport, OfStudy, TableReport, of_one_backbone
from entropy_valley.tables.labels import RISING, method
from entropy_valley.tables.lookup import Results, TestPlace, best, by_steps
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection
from entropy_valley.tables.style import METHOD_COLOURS, METHOD_MARKERS, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = ("oracle", "ev", "ratio")
NOTES = (
    Note("Gap closure: (EV − Ratio) / (Oracle − Ratio) in each run, n/a unless Oracle leads; then mean ± std."),
    Note("Bold: EV's mean is not below Oracle's, which knows the reference's length but decodes no better for it."),
    Note("L ≤ T: share of EV's canvases that have at most T slots; more steps than T leave them as they are."),
)


class Budgets(OfStudy, TableReport):
    """Oracle, EV and Ratio at each step budget: a group per direction, a row per T."""

    caption = (
        "{metric} of Fixed Ratio, Entropy-Valley and Oracle length at each step budget T. More steps than slots leave "
        "a canvas as it is; the table gives the share of such canvases."
    )

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        yield from of_one_backbone("the layout budgets", cells)
        if len(orders := {cell.order for cell in cells}) > 1:
            yield f"the layout budgets is of one reveal order, not of {', '.join(sorted(orders))}"
        systems = {(cell.run, cell.steps, cell.method) for cell in cells}
        for name in matrix.COMPARED:
            if any((cell.run, cell.steps, name) not in systems for cell in cells):
                yield f"the layout budgets needs the method {name} at every T; add it"

    def numbers(self, params: Params) -> pd.DataFrame:
        return with_costs(super().numbers(params), params.cells)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        sweep = by_steps(numbers)
        first = next(iter(sweep.values()))
        titles = ("T", *(method(name).short for name in METHODS), "Gap closure", "L ≤ T")
        columns = (Column("Direction", align="l"), *(Column(title, align="r") for title in titles))
        groups = tuple(_group(params, sweep, place) for place in first.places)
        backbone = ", ".join(params.label("backbones", name) for name in first.backbones)
        setting = Note(f"{params.metric.label} at each step budget T; {backbone}, reveal order {first.order}.")
        lines = (setting, *notes.spread(numbers), *NOTES, *notes.doubtful_gaps(params, ["ratio"]))
        return Table(columns, (TableSection(groups),), lines)


class BudgetsFigure(OfStudy, FigureReport):
    """A panel for each direction: lines of means with deviations over runs, T on a logarithmic axis."""

    caption = Budgets.caption
    width, height = 2.1, 2.2

    def numbers(self, params: Params) -> pd.DataFrame:
        return with_costs(super().numbers(params), params.cells)

    def panels(self, params: Params, numbers: pd.DataFrame) -> list[Panel]:
        sweep = by_steps(numbers)
        places = next(iter(sweep.values())).places
        return [_panel(params, sweep, place, places.index(place)) for place in places]


def _group(params: Params, sweep: Mapping[int, Results], place: TestPlace) -> Group:
    rows = tuple(_row(params, steps, results, place) for steps, results in sweep.items())
    return Group(params.place(place.direction, place.testset), rows)


def _row(params: Params, steps: int, results: Results, place: TestPlace) -> TableRow:
    oracle, ev, ratio = (results.row(place, name, params.metric) for name in METHODS)
    closure = formats.closure(ev.gap_closure_mean, ev.gap_closure_std, ev.gap_closure_runs, ev.runs)
    ahead = ev.gap_closure_runs > 0 and best(params.metric)((ev.mean, oracle.mean)) == ev.mean
    texts = (formats.mean_std(row.mean, row.std, params.metric.decimals) for row in (oracle, ev, ratio))
    scores = [TableCell(text, shaded=name == "ev") for name, text in zip(METHODS, texts, strict=True)]
    return TableRow(
        (TableCell(str(steps)), *scores, TableCell(closure, bold=ahead), TableCell(f"{100 * ev.within_steps:.1f}%"))
    )


def _panel(params: Params, sweep: Mapping[int, Results], place: TestPlace, number: int) -> Panel:
    lines = {name: [results.row(place, name, params.metric) for results in sweep.values()] for name in RISING}

    def panel(axes: Axes) -> None:
        for name, rows in lines.items():
            look = {"color": METHOD_COLOURS[name], "marker": METHOD_MARKERS[name], "label": method(name).short}
            deviations = [row.std for row in rows] if any(row.runs > 1 for row in rows) else None
            axes.errorbar(list(sweep), [row.mean for row in rows], yerr=deviations, markersize=4, **look)
        axes.set_xscale("log", base=2)
        axes.set_xticks(list(sweep), [str(steps) for steps in sweep], fontsize=7)
        axes.minorticks_off()
        axes.set_xlabel("Denoising steps T")
        axes.set_title(params.place(place.direction, place.testset))
        if not number:
            axes.set_ylabel(params.metric.label)
            below = {"loc": "upper center", "bbox_to_anchor": (0.4, -0.22)}  # within a panel it would lie over a line
            axes.legend(ncols=len(lines), fontsize=7, handlelength=1.2, columnspacing=1, **below)

    return panel
