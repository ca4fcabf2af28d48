"""The table of reveal orders on the same canvases: scores, lead over the main order, cost; then how far they span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from entropy_valley.analysis.order_sweep import FIXED, RUN, OrderSpec
from entropy_valley.reporting import formats
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.orders import order_label
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

DASH = formats.NONE
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class _Run:
    """One run: where it is, and the numbers of each (method, order) in it."""

    heading: str
    systems: Mapping[tuple[str, str], Numbers]

    def orders(self) -> list[str]:
        return [order for kind, order in self.systems if kind == FIXED]


def order_table(spec: OrderSpec, numbers: pd.DataFrame, provenance: Sequence[Note] = ()) -> Table:
    """Lay out :func:`analysis.order_sweep.order_sweep`: for each run the main order and those guided by the source,
    the controls, and the spans."""
    sections = [
        section for key, group in numbers.groupby(list(RUN), sort=False) for section in _sections(spec, key, group)
    ]
    return Table(_columns(spec), tuple(sections), (*_notes(spec), *provenance))


def run_heading(spec: OrderSpec, key: Sequence[str | int], sentences: float) -> str:
    """Backbone, direction, T, seed and number of sentences of a run."""
    backbone, direction, testset, steps, seed = key
    place = spec.place(str(direction), str(testset))
    return f"{spec.label('backbones', str(backbone))}, {place}, T = {steps}, training seed {seed}, N = {sentences:.0f}"


def lead(test: Numbers) -> str:
    """A difference with its confidence interval."""
    return formats.interval(test["delta"], test["ci_low"], test["ci_high"], 4)


def _columns(spec: OrderSpec) -> tuple[Column, ...]:
    main = order_label(spec.main, spec.orders[spec.main])
    titles = (spec.metric_name, "sacreBLEU", f"Δ vs {main} [95 % CI]", "p", "Calls", "Slots", "Passes")
    return (Column("Schedule", align="l"), *map(Column, titles))


def _sections(spec: OrderSpec, key: Sequence[str | int], group: pd.DataFrame) -> list[Section]:
    systems: dict[tuple[str, str], dict[str, float]] = {}
    for row in group.itertuples(index=False):
        systems.setdefault((row.method, row.order), {})[row.metric] = row.value
    run = _Run(run_heading(spec, key, systems[FIXED, spec.main]["sentences"]), systems)
    guided = [name for name in run.orders() if name != spec.main and spec.orders[name].source_guided]
    controls = [name for name in run.orders() if name != spec.main and not spec.orders[name].source_guided]
    sections = [Section(tuple(_order(spec, run, name) for name in (spec.main, *guided)), run.heading)]
    if controls:
        sections.append(Section(tuple(_order(spec, run, name) for name in controls), "Additional controls"))
    return [*sections, Section(tuple(_spans(systems["", ""])))]


def _order(spec: OrderSpec, run: _Run, name: str) -> Group:
    found = run.systems[FIXED, name]
    tested = "delta" in found
    texts = (
        f"{found['comet22']:.4f}",
        f"{found['bleu']:.2f}",
        lead(found) if tested else DASH,
        formats.p_value(found["p_two_sided"], spec.resamples) if tested else DASH,
        *(f"{found[key]:.2f}" for key in ("calls", "slots", "passes")),
    )
    return _row(order_label(name, spec.orders[name]), texts)


def _spans(found: Numbers) -> list[Group]:
    rows = [_row("Source-guided span (max − min)", (f"{found['source_guided_span']:.4f}",))]
    for name in (FIXED, "ev"):
        if f"{name}_ratio" in found:
            over = found[f"{name}_ratio_over_span"]
            times = DASH if pd.isna(over) else f"{formats.minus(f'{over:.1f}')}× the span"
            texts = (formats.signed(found[f"{name}_ratio"], 4), DASH, times)
            rows.append(_row(f"{method(name).short} − {method('ratio').short}", texts))
    return rows


def _row(label: str, texts: Sequence[str]) -> Group:
    """A row of its own; what is not said is a dash."""
    return Group(label, (Row(tuple(map(Cell, [*texts, *[DASH] * (7 - len(texts))]))),))


def _notes(spec: OrderSpec) -> tuple[Note, ...]:
    main = order_label(spec.main, spec.orders[spec.main])
    return (
        Note("Schedules: the canvas has the reference's length, and as many slots are revealed at each step."),
        Note("Δ: mean difference over sentences, percentile bootstrap; p two-sided."),
        Note(f"Span: over {main} and the schedules guided by the source (those with SIG)."),
        Note(
            "Calls and slots: forward passes a sentence as the paper counts them, and the canvas slots in these; a "
            "step that looks at the SIG is two. Passes: those really needed."
        ),
    )
