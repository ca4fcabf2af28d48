"""The step budget table: COMET of Oracle, EV and Ratio at each T, and how much of the gap EV closes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting import formats, notes
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.results import Place, Results, by_steps
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

METHODS = ("oracle", "ev", "ratio")
NOTES = (
    Note("Gap closure: (EV − Ratio) / (Oracle − Ratio) in each run, n/a unless Oracle leads; then mean ± std."),
    Note("Bold: EV's mean is not below Oracle's, which knows the reference's length but decodes no better for it."),
    Note("L ≤ T: share of EV's canvases that have at most T slots; more steps than T leave them as they are."),
)


def budgets_table(spec: Spec, summary: pd.DataFrame, provenance: Sequence[Note] = ()) -> Table:
    """Lay out a summary with costs (:func:`costs.with_costs`) of one backbone and order: a group per direction, a row
    per T."""
    sweep = by_steps(summary)
    first = next(iter(sweep.values()))
    titles = ("T", *(method(name).short for name in METHODS), "Gap closure", "L ≤ T")
    columns = (Column("Direction", align="l"), *(Column(title, align="r") for title in titles))
    groups = tuple(_group(spec, sweep, place) for place in first.places)
    backbone = ", ".join(spec.label("backbones", name) for name in first.backbones)
    setting = Note(f"{spec.metric_name} at each step budget T; {backbone}, reveal order {first.order}.")
    runs = notes.spread(summary) if summary["runs"].max() > 1 else (Note("One run (training seed)."),)
    return Table(columns, (Section(groups),), (setting, *runs, *NOTES, *provenance))


def _group(spec: Spec, sweep: Mapping[int, Results], place: Place) -> Group:
    rows = tuple(_row(steps, results, place) for steps, results in sweep.items())
    return Group(spec.place(place.direction, place.testset), rows)


def _row(steps: int, results: Results, place: Place) -> Row:
    oracle, ev, ratio = (results.row(place, name, "comet22") for name in METHODS)
    closure = formats.closure(ev.gap_closure_mean, ev.gap_closure_std, ev.gap_closure_runs, ev.runs)
    ahead = ev.gap_closure_runs > 0 and ev.mean >= oracle.mean
    scores = [Cell(_score(oracle)), Cell(_score(ev), shaded=True), Cell(_score(ratio))]
    return Row((Cell(str(steps)), *scores, Cell(closure, bold=ahead), Cell(f"{100 * ev.within_steps:.1f}%")))


def _score(row: Any) -> str:
    """Without a deviation where there is but one run: a column of dashes says nothing."""
    decimals = formats.DECIMALS["comet22"]
    return formats.minus(f"{row.mean:.{decimals}f}") if row.runs == 1 else formats.mean_std(row.mean, row.std, decimals)
