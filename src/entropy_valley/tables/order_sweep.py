"""The table of reveal orders on the same canvases: scores, lead over the main order, cost; then how far they span."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.config.methods import order_settings, source_guided
from entropy_valley.config.schema import Study
from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import Params, ScoredCell
from entropy_valley.stats.closure import per_sentence, system_scores
from entropy_valley.stats.comparisons import against_mean, by_run
from entropy_valley.tables import formats
from entropy_valley.tables.base import OfStudy, TableReport
from entropy_valley.tables.labels import method, order_label
from entropy_valley.tables.render import Column, Group, Note, Row, Section, Table, TableCell

RUN = ("backbone", "direction", "testset", "steps", "seed")
FIELDS = [*RUN, "method", "order", "metric", "value"]
SYSTEM = attrgetter("method", "order")
FIXED = "oracle"  # the length method under which orders are compared
COSTS = ("sentences", "calls", "slots", "passes")  # per sentence, but for their number
TESTED = ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")


def order_sweep(params: Params) -> pd.DataFrame:
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
    for run, systems in by_run(params.cells, RUN, SYSTEM).items():
        numbers = {system: _numbers(params, systems, cell) for system, cell in systems.items()}
        numbers["", ""] = _span_numbers(params, numbers)
        rows += [(*run, *system, *item) for system, found in numbers.items() for item in found.items()]
    return pd.DataFrame(rows, columns=FIELDS)


def fixed(systems: Mapping[tuple[str, str], ScoredCell], order: str) -> ScoredCell:
    """A run's cell of an order under Oracle's lengths."""
    if (FIXED, order) not in systems:
        problem = f"its run has no cell of {FIXED} and {order}"
        raise InputError(next(iter(systems.values())).name, problem, "Add both to the study.")
    return systems[FIXED, order]


def _numbers(params: Params, systems: Mapping[tuple[str, str], ScoredCell], cell: ScoredCell) -> dict[str, float]:
    cost = per_sentence(cell)
    found = system_scores(cell, params.metrics) | {name: cost[name] for name in COSTS}
    if cell.method == FIXED and cell.order != params["main"]:
        test = asdict(against_mean(cell, [fixed(systems, params["main"])], **params.test))
        found |= {name: test[name] for name in TESTED}
    return found


def _span_numbers(params: Params, numbers: Mapping[tuple[str, str], Mapping[str, float]]) -> dict[str, float]:
    main = {system: found[params.metric.name] for system, found in numbers.items()}
    orders = {order: score for (method, order), score in main.items() if method == FIXED}
    guided = [score for order, score in orders.items() if params["orders"][order]["source_guided"]]
    span, with_main = _range(guided), _range([*guided, orders[params["main"]]])
    found = {"source_guided_span": span, "main_and_guided_span": with_main, "span": _range(list(orders.values()))}
    found["length_span"] = _range([score for (_, order), score in main.items() if order == params["main"]])
    for name in (FIXED, "ev"):
        if (name, params["main"]) in main and ("ratio", params["main"]) in main:
            lead = main[name, params["main"]] - main["ratio", params["main"]]
            found |= {f"{name}_ratio": lead, f"{name}_ratio_over_span": lead / span if span else float("nan")}
    return found


def _range(scores: Sequence[float]) -> float:
    return max(scores) - min(scores) if scores else float("nan")


DASH = formats.NONE
DELTA = Note("Δ: mean difference over sentences, percentile bootstrap; p two-sided.")
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class _Run:
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

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        return described_orders(experiment, cells)

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        main, orders = experiment.tables.order, {cell.order for cell in cells if cell.method == FIXED}
        if main not in orders:
            yield f"the layout {study.layout} needs the method {FIXED} and the order {main}; add both"

    def numbers(self, params: Params) -> pd.DataFrame:
        return order_sweep(params)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        """For each run the main order and those guided by the source, the controls, and the spans."""
        runs = numbers.groupby(list(RUN), sort=False)
        sections = itertools.chain.from_iterable(_sections(params, key, group) for key, group in runs)
        return Table(_columns(params), tuple(sections), _notes(params))


def described_orders(experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
    """Params: the ``orders`` of cells (order, settings, whether the SIG guides it), and the ``main`` one of them."""
    main = experiment.tables.order
    names = dict.fromkeys([main, *(cell.order for cell in cells)])
    return {"main": main, "orders": {name: _described(experiment, name) for name in names}}


def _described(experiment: Experiment, name: str) -> dict[str, Any]:
    found = order_settings(experiment, name)
    order, settings = found["order"], found["order_settings"]
    return {"order": order, "settings": settings, "source_guided": source_guided(experiment, name)}


def run_heading(params: Params, key: Sequence[str | int], sentences: float) -> str:
    """Backbone, direction, T, seed and number of sentences of a run."""
    backbone, direction, testset, steps, seed = key
    place = f"{params.label('backbones', str(backbone))}, {params.place(str(direction), str(testset))}"
    return f"{place}, T = {steps}, training seed {seed}, N = {sentences:.0f}"


def _columns(params: Params) -> tuple[Column, ...]:
    main = order_label(params["main"], params["orders"][params["main"]])
    metrics = [metric.label for metric in params.shown_metrics]
    titles = (*metrics, f"Δ vs {main} [95 % CI]", "p", "Calls", "Slots", "Passes")
    return (Column("Schedule", align="l"), *map(Column, titles))


def _sections(params: Params, key: Sequence[str | int], group: pd.DataFrame) -> list[Section]:
    systems: dict[tuple[str, str], dict[str, float]] = {}
    for row in group.itertuples(index=False):
        systems.setdefault((row.method, row.order), {})[row.metric] = row.value
    run = _Run(run_heading(params, key, systems[FIXED, params["main"]]["sentences"]), systems)
    guided = [name for name in run.orders() if name != params["main"] and params["orders"][name]["source_guided"]]
    controls = [name for name in run.orders() if name != params["main"] and not params["orders"][name]["source_guided"]]
    main = order_label(params["main"], params["orders"][params["main"]])
    sections = [Section(tuple(_order(params, run, name) for name in (params["main"], *guided)), run.heading)]
    if controls:
        sections.append(Section(tuple(_order(params, run, name) for name in controls), "Additional controls"))
    spans = tuple(_spans(params.metric, systems["", ""], main))
    return [*sections, Section(spans)] if spans else sections


def _order(params: Params, run: _Run, name: str) -> Group:
    found = run.systems[FIXED, name]
    tested = "delta" in found
    texts = (
        *(formats.number(found[metric.name], metric.decimals) for metric in params.shown_metrics),
        formats.lead(found, params.metric) if tested else DASH,
        formats.p_value(found["p_two_sided"], params.how.resamples) if tested else DASH,
        *(f"{found[key]:.2f}" for key in ("calls", "slots", "passes")),
    )
    return _row(order_label(name, params["orders"][name]), texts)


def _spans(metric: Metric, found: Numbers, main: str) -> list[Group]:
    spans = {"Source-guided span (max − min)": "source_guided_span", f"The same with {main}": "main_and_guided_span"}
    guided = not pd.isna(found["source_guided_span"])
    rows = [_row(label, (formats.number(found[name], metric.decimals),)) for label, name in spans.items() if guided]
    for name in (FIXED, "ev"):
        if f"{name}_ratio" in found:
            over = found[f"{name}_ratio_over_span"]
            times = DASH if pd.isna(over) else f"{formats.minus(f'{over:.1f}')}× the span"
            texts = (formats.signed(found[f"{name}_ratio"], metric.decimals), DASH, times)
            rows.append(_row(f"{method(name).short} − {method('ratio').short}", texts))
    return rows


def _row(label: str, texts: Sequence[str]) -> Group:
    """A row of its own; what is not said is a dash."""
    return Group(label, (Row(tuple(map(TableCell, [*texts, *[DASH] * (7 - len(texts))]))),))


def _notes(params: Params) -> tuple[Note, ...]:
    main = order_label(params["main"], params["orders"][params["main"]])
    guided = any(order["source_guided"] for order in params["orders"].values())
    return (
        Note("Schedules: the canvas has the reference's length, and as many slots are revealed at each step."),
        DELTA,
        *([Note(f"Span: over the schedules by the source (those with SIG), and below with {main}.")] if guided else []),
        Note(
            "Calls and slots: forward passes a sentence as the paper counts them, and the canvas slots in these; a "
            "step that looks at the SIG is two. Passes: those really needed."
        ),
    )
