"""Reveal orders on the same canvases, run by run: each against the main one, and how far they lie apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Self

from entropy_valley.analysis.comparisons import against_mean, by_run
from entropy_valley.analysis.costs import per_sentence
from entropy_valley.analysis.params import Params, ScoredCell, record
from entropy_valley.analysis.scores import system_scores
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd

RUN = ("backbone", "direction", "testset", "steps", "seed")
COLUMNS = [*RUN, "method", "order", "metric", "value"]
SYSTEM = attrgetter("method", "order")
FIXED = "oracle"  # the length method under which orders are compared
COSTS = ("sentences", "calls", "slots", "passes")  # per sentence, but for their number
TESTED = ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")


@dataclass(frozen=True)
class RevealOrder:
    """What a name of the config stands for: an order, its settings, and whether it looks at the SIG."""

    order: str
    settings: Mapping[str, Any]
    source_guided: bool


@dataclass(frozen=True)
class OrderParams(Params):
    """As :class:`Params`; ``main`` is the order that the others are compared with."""

    orders: Mapping[str, RevealOrder] = field(default_factory=dict)
    main: str = "med"

    @classmethod
    def parse(cls, value: Mapping[str, Any], required: Iterable[str] = ()) -> Self:
        """As :meth:`Params.parse`; a cell of an order that ``orders`` does not have is an :class:`InputError`."""
        params = super().parse(value, ("orders", *required))
        names = dict.fromkeys([params.main, *(cell.order for cell in params.cells)])
        orders = {name: record(RevealOrder, f"order {name}", params.orders.get(name, {})) for name in names}
        return dataclasses.replace(params, orders=orders)


def order_sweep(params: OrderParams) -> pd.DataFrame:
    """The tidy numbers, :data:`COLUMNS`.

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
        numbers["", ""] = _spans(params, numbers)
        rows += [(*run, *system, *item) for system, found in numbers.items() for item in found.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


def fixed(systems: Mapping[tuple[str, str], ScoredCell], order: str) -> ScoredCell:
    """A run's cell of an order under Oracle's lengths."""
    if (FIXED, order) not in systems:
        problem = f"its run has no cell of {FIXED} and {order}"
        raise InputError(next(iter(systems.values())).name, problem, "Add both to the study.")
    return systems[FIXED, order]


def _numbers(params: OrderParams, systems: Mapping[tuple[str, str], ScoredCell], cell: ScoredCell) -> dict[str, float]:
    cost = per_sentence(cell)
    found = system_scores(cell, params.metrics) | {name: cost[name] for name in COSTS}
    if cell.method == FIXED and cell.order != params.main:
        test = asdict(against_mean(cell, [fixed(systems, params.main)], **params.test))
        found |= {name: test[name] for name in TESTED}
    return found


def _spans(params: OrderParams, numbers: Mapping[tuple[str, str], Mapping[str, float]]) -> dict[str, float]:
    main = {system: found[params.metric.name] for system, found in numbers.items()}
    orders = {order: score for (method, order), score in main.items() if method == FIXED}
    guided = [score for order, score in orders.items() if params.orders[order].source_guided]
    span, with_main = _range(guided), _range([*guided, orders[params.main]])
    found = {"source_guided_span": span, "main_and_guided_span": with_main, "span": _range(list(orders.values()))}
    found["length_span"] = _range([score for (_, order), score in main.items() if order == params.main])
    for method in (FIXED, "ev"):
        if (method, params.main) in main and ("ratio", params.main) in main:
            lead = main[method, params.main] - main["ratio", params.main]
            found |= {f"{method}_ratio": lead, f"{method}_ratio_over_span": lead / span if span else float("nan")}
    return found


def _range(scores: Sequence[float]) -> float:
    return max(scores) - min(scores) if scores else float("nan")
