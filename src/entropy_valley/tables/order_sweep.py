"""The table of reveal orders on the same canvases: scores, lead over the main order, cost; then how far they span."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

import pandas as pd

from entropy_valley.config.matrix import Cell
from entropy_valley.config.methods import order_settings, source_guided
from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.closure import per_sentence
from entropy_valley.stats.comparisons import against_mean, by_run
from entropy_valley.tables import formats
from entropy_valley.tables.base import OfStudy, TableReport
from entropy_valley.tables.labels import method
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

RUN = ("backbone", "direction", "testset", "steps", "seed")
FIELDS = [*RUN, "method", "order", "metric", "value"]
SYSTEM = attrgetter("method", "order")
FIXED = "oracle"  # the length method under which orders are compared
COSTS = ("sentences", "calls", "slots", "passes")  # per sentence, but for their number
TESTED = ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")
DASH = formats.NONE
DELTA = Note("Δ: mean difference over sentences, percentile bootstrap; p two-sided.")
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class _OrderRun:
    """One run: where it is, and the numbers of each (method, order) in it."""

    heading: str
    systems: Mapping[tuple[str, str], Numbers]

    def orders(self) -> list[str]:
        return [order for kind, order in self.systems if kind == FIXED]


class Orders(OfStudy, TableReport):
    """Reveal orders on canvases of the reference's length, and how far they lie apart; a block for each run."""

    caption = (
        "Reveal orders on canvases of the reference's length, each tested against MED, sentence by sentence, in each "
        "run by itself. The last rows say how far the orders lie apart, and how that compares with what the choice of "
        "the length is worth."
    )

    recorded = ("main", "orders")

    @property
    def main(self) -> str:
        """The order that the others are tested against."""
        return self.experiment.tables.order

    @functools.cached_property
    def orders(self) -> dict[str, dict[str, Any]]:
        """The orders of its cells, the main one first: class, settings, and whether the source guides it."""
        described = {}
        for name in dict.fromkeys([self.main, *(cell.order for cell in self.cells)]):
            section = order_settings(self.experiment, name)
            guided = source_guided(self.experiment, name)
            described[name] = {
                "order": section["order"],
                "settings": section["order_settings"],
                "source_guided": guided,
            }
        return described

    def is_guided(self, order: str) -> bool:
        """Whether the source guides an order."""
        return self.orders[order]["source_guided"]

    def problems(self) -> Iterator[str]:
        if self.main not in {cell.order for cell in self.cells if cell.method == FIXED}:
            yield f"the layout {self.study.layout} needs the method {FIXED} and the order {self.main}; add both"

    def numbers(self, results: Results) -> pd.DataFrame:
        return order_sweep(self, results)

    def run_heading(self, key: Sequence[str | int], sentences: float) -> str:
        """Backbone, direction, T, seed and number of sentences of a run."""
        backbone, direction, testset, steps, seed = key
        place = f"{self.backbone(str(backbone))}, {self.place(str(direction), str(testset))}"
        return f"{place}, T = {steps}, training seed {seed}, N = {sentences:.0f}"

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        """For each run the main order and those guided by the source, the controls, and the spans."""
        runs = numbers.groupby(list(RUN), sort=False)
        sections = itertools.chain.from_iterable(_sections(self, key, group) for key, group in runs)
        return Table(_columns(self), tuple(sections), _notes(self))


# --- The numbers.


def order_sweep(report: Orders, results: Results) -> pd.DataFrame:
    """The tidy numbers, :data:`FIELDS`.

    Of each cell: the system scores, ``sentences``, and calls, slots and passes per sentence; of an order under Oracle's
    lengths also the paired test of its main score against the main order's. Of each run (method and order ""):
    ``source_guided_span``, the range of main scores over the orders guided by the source, as in the paper,
    ``main_and_guided_span`` with the main order, ``span`` over all; ``length_span``, the range over the length methods
    under the main order; and, where their cells are there, ``oracle_ratio``
    and ``ev_ratio``, their differences under the main order, each also over the first of these spans, as
    ``oracle_ratio_over_span``. NaN where that is 0, or no order is guided by the source.
    """
    rows = []
    for run, systems in by_run(report.cells, RUN, SYSTEM).items():
        numbers = {system: _numbers(report, results, systems, cell) for system, cell in systems.items()}
        numbers["", ""] = _span_numbers(report, numbers)
        rows += [(*run, *system, *item) for system, values in numbers.items() for item in values.items()]
    return pd.DataFrame(rows, columns=FIELDS)


def fixed(systems: Mapping[tuple[str, str], Cell], order: str) -> Cell:
    """A run's cell of an order under Oracle's lengths."""
    if (FIXED, order) not in systems:
        problem = f"its run has no cell of {FIXED} and {order}"
        raise InputError(next(iter(systems.values())).name, problem, "Add both to the study.")
    return systems[FIXED, order]


def _numbers(report: Orders, results: Results, systems: Mapping[tuple[str, str], Cell], cell: Cell) -> dict[str, float]:
    cost = per_sentence(results, cell)
    numbers = results.system_scores(cell, report.metrics) | {name: cost[name] for name in COSTS}
    if cell.method == FIXED and cell.order != report.main:
        test = asdict(against_mean(results, cell, [fixed(systems, report.main)], **report.test))
        numbers |= {name: test[name] for name in TESTED}
    return numbers


def _span_numbers(report: Orders, numbers: Mapping[tuple[str, str], Mapping[str, float]]) -> dict[str, float]:
    main = {system: spans[report.metric.name] for system, spans in numbers.items()}
    orders = {order: score for (method, order), score in main.items() if method == FIXED}
    guided = [score for order, score in orders.items() if report.is_guided(order)]
    span, with_main = _range(guided), _range([*guided, orders[report.main]])
    spans = {"source_guided_span": span, "main_and_guided_span": with_main, "span": _range(list(orders.values()))}
    spans["length_span"] = _range([score for (_, order), score in main.items() if order == report.main])
    for name in (FIXED, "ev"):
        if (name, report.main) in main and ("ratio", report.main) in main:
            lead = main[name, report.main] - main["ratio", report.main]
            spans |= {f"{name}_ratio": lead, f"{name}_ratio_over_span": lead / span if span else float("nan")}
    return spans


def _range(scores: Sequence[float]) -> float:
    return max(scores) - min(scores) if scores else float("nan")


# --- The layout.


def _columns(report: Orders) -> tuple[Column, ...]:
    main = report.order(report.main)
    metrics = [metric.label for metric in report.shown_metrics]
    titles = (*metrics, f"Δ vs {main} [95 % CI]", "p", "Calls", "Slots", "Passes")
    return (Column("Schedule", align="l"), *map(Column, titles))


def _sections(report: Orders, key: Sequence[str | int], group: pd.DataFrame) -> list[TableSection]:
    systems: dict[tuple[str, str], dict[str, float]] = {}
    for row in group.itertuples(index=False):
        systems.setdefault((row.method, row.order), {})[row.metric] = row.value
    run = _OrderRun(report.run_heading(key, systems[FIXED, report.main]["sentences"]), systems)
    guided = [name for name in run.orders() if name != report.main and report.is_guided(name)]
    controls = [name for name in run.orders() if name != report.main and not report.is_guided(name)]
    main = report.order(report.main)
    sections = [TableSection(tuple(_order(report, run, name) for name in (report.main, *guided)), run.heading)]
    if controls:
        sections.append(TableSection(tuple(_order(report, run, name) for name in controls), "Additional controls"))
    spans = tuple(_spans(report.metric, systems["", ""], main))
    return [*sections, TableSection(spans)] if spans else sections


def _order(report: Orders, run: _OrderRun, name: str) -> Group:
    values = run.systems[FIXED, name]
    tested = "delta" in values
    texts = (
        *(formats.number(values[metric.name], metric.decimals) for metric in report.shown_metrics),
        formats.lead(values, report.metric) if tested else DASH,
        formats.p_value(values["p_two_sided"], report.statistics.resamples) if tested else DASH,
        *(f"{values[key]:.2f}" for key in ("calls", "slots", "passes")),
    )
    return _row(report.order(name), texts)


def _spans(metric: Metric, numbers: Numbers, main: str) -> list[Group]:
    spans = {"Source-guided span (max − min)": "source_guided_span", f"The same with {main}": "main_and_guided_span"}
    guided = not pd.isna(numbers["source_guided_span"])
    rows = [_row(label, (formats.number(numbers[name], metric.decimals),)) for label, name in spans.items() if guided]
    for name in (FIXED, "ev"):
        if f"{name}_ratio" in numbers:
            over = numbers[f"{name}_ratio_over_span"]
            times = DASH if pd.isna(over) else f"{formats.minus(f'{over:.1f}')}× the span"
            texts = (formats.signed(numbers[f"{name}_ratio"], metric.decimals), DASH, times)
            rows.append(_row(f"{method(name).short} − {method('ratio').short}", texts))
    return rows


def _row(label: str, texts: Sequence[str]) -> Group:
    """A row of its own; what is not said is a dash."""
    return Group(label, (TableRow(tuple(map(TableCell, [*texts, *[DASH] * (7 - len(texts))]))),))


def _notes(report: Orders) -> tuple[Note, ...]:
    main = report.order(report.main)
    guided = any(map(report.is_guided, report.orders))
    return (
        Note("Schedules: the canvas has the reference's length, and as many slots are revealed at each step."),
        DELTA,
        *([Note(f"Span: over the schedules by the source (those with SIG), and below with {main}.")] if guided else []),
        Note(
            "Calls and slots: forward passes a sentence as the paper counts them, and the canvas slots in these; a "
            "step that looks at the SIG is two. Passes: those really needed."
        ),
    )
