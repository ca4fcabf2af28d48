"""Tables of systems: summaries, paired tests, studies, reveal orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from entropy_valley.verification import numbers
from entropy_valley.verification.cells import (
    LENGTHS,
    PLACE,
    RUN,
    SETTING,
    TESTED,
    Cell,
    Expected,
    Table,
    by_method,
    grouped,
    named,
    over_runs,
    shared_seeds,
    summary,
)
from entropy_valley.verification.folder import Unchecked
from entropy_valley.verification.numbers import NAN, closure, deviation, mean, paired

PAIRS = (("ev", "ratio"), ("ev", "ratio_eos"), ("oracle", "ev"), ("oracle", "ratio"), ("oracle", "ratio_eos"))


# --- Summaries over runs: main, crossbb, matrix, budgets, readings, hero.


def main_table(table: Table) -> Iterator[Expected]:
    rows = summary(table, table.cells, table.metrics, table.score)
    changed = _changed_readings(table) if "origins" in table.params else {}
    for row in rows:
        system = (*(row[key] for key in SETTING), row["method"])
        yield {**row, "changed": changed.get(system, NAN) if row["metric"] == table.main else NAN}


def _changed_readings(table: Table) -> dict[tuple[Any, ...], float]:
    """The share of sentences with another score than under the readings of the backbone's origin, over runs."""
    cells, shares = {cell.get(*RUN, "method"): cell for cell in table.cells}, {}
    for cell in table.cells:
        origin = table.params["origins"][cell.backbone]
        if origin != cell.backbone:
            own = table.sentences(cell)
            other = table.sentences(cells[(origin, *cell.get(*RUN, "method")[1:])])
            share = sum(score != other.get(name) for name, score in own.items()) / len(own)
            shares.setdefault(cell.get(*SETTING, "method"), []).append(share)
    return {system: mean(values) for system, values in shares.items()}


def hero(table: Table) -> Iterator[Expected]:
    """A: the length methods; B: with autoregressive systems, over shared seeds; C: lengths and orders."""
    diffusion = [cell for cell in table.cells if cell.steps]
    for row in summary(table, diffusion, [table.main], table.score):
        yield {**row, "panel": "A"}
    if len(diffusion) < len(table.cells):
        for row in summary(table, shared_seeds(table.cells), [table.main], table.score):
            yield {**row, "panel": "B"}
    if table.params.get("sweep"):
        yield from _orders_of_hero(table, Table(table.folder, table.place, table.params["sweep"]))


def _orders_of_hero(table: Table, sweep: Table) -> Iterator[Expected]:
    first = sweep.cells[0]
    keys = ("backbone", "direction", "testset", "steps", "seed")
    for row in orders(sweep):
        shown = row["metric"] in (sweep.main, "length_span", "source_guided_span")
        if shown and all(row[key] == getattr(first, key) for key in keys):
            yield {**row, "mean": row["value"], "std": NAN, "runs": 1, "panel": "C"}
    place = ("backbone", "direction", "testset")
    cells = [cell for cell in table.cells if cell.get(*place) == first.get(*place) and cell.method in LENGTHS]
    means = [{**row, "seed": NAN} for row in summary(table, cells, [table.main], table.score)]
    if means and max(row["runs"] for row in means) > 1:
        for row in means:
            shown = (*SETTING, "method", "metric", "seed", "mean", "std", "runs")
            yield {**{key: row[key] for key in shown}, "panel": "C"}
        spread = max(row["mean"] for row in means) - min(row["mean"] for row in means)
        about = {**named(SETTING, first.get(*SETTING)), "order": "", "method": "", "metric": "length_span"}
        yield {**about, "seed": NAN, "mean": spread, "std": NAN, "runs": means[0]["runs"], "panel": "C"}


# --- Paired tests: full_significance and ar_reference.


def _with_printed(test: Mapping[str, Any]) -> dict[str, Any]:
    printed = {}
    for key, sides in (("p_one_sided", 1), ("p_two_sided", 2)):
        printed[f"{key}_printed"] = f"{test[key]:.4f}" if test[key] else f"< {sides / test['resamples']:g}"
    return {**test, **printed}


def significance(table: Table) -> Iterator[Expected]:
    for run, cells in grouped(table.cells, *RUN).items():
        methods = by_method(cells)
        for first, second in PAIRS:
            if first in methods and second in methods:
                test = _with_printed(table.test(methods[first], [methods[second]]))
                yield {**named(RUN, run), "first": first, "second": second, "metric": table.main, **test}


def ar_reference(table: Table) -> Iterator[Expected]:
    for row in summary(table, shared_seeds(table.cells), table.metrics, table.score):
        yield {**row, "against": "", "seed": NAN}
    leads: dict[tuple[Any, ...], list[float]] = {}
    beams = [cell for cell in table.cells if not cell.steps]
    for first in (cell for cell in table.cells if cell.method == "ev"):
        for second in (one for one in beams if one.get(*PLACE, "seed") == first.get(*PLACE, "seed")):
            test, about = table.test(first, [second]), (*first.get(*SETTING), "ev", second.backbone, second.method)
            leads.setdefault(about, []).append(test["delta"])
            row = {**named((*SETTING, "method", "against"), about[:-1]), "metric": table.main, "seed": first.seed}
            yield {**row, **_with_printed(test), "mean": test["delta"], "std": NAN, "runs": 1}
    for about, deltas in leads.items():
        row = {**named((*SETTING, "method", "against"), about[:-1]), "metric": table.main}
        yield {**row, "mean": mean(deltas), "runs": len(deltas)}


# --- Studies of systems: a row for each run, then mean and deviation over runs.


def study(table: Table) -> Iterator[Expected]:
    against, wanted = tuple(table.params["against"]), table.params["columns"]
    runs: dict[Cell, dict[str, Any]] = {cell: _run_of_study(table, cell) for cell in table.cells}
    at = {
        cell.get("backbone", "direction", "testset", "pool", "seed", "method", "order", "steps"): cell for cell in runs
    }

    def find(cell: Cell, method: str, order: str, steps: int, backbone: str | None = None) -> Cell | None:
        run = cell.get("backbone", "direction", "testset", "pool", "seed")
        return at.get((backbone or run[0], *run[1:], method, order, steps))

    for cell, row in runs.items():
        row |= _gaps(table, runs, cell, find, against[1:])
        first = find(cell, *against)
        test = table.test(first, [cell]) if first and first != cell else dict.fromkeys(("delta", *TESTED), NAN)
        row |= {"lead": test["delta"], **{key: test[key] for key in TESTED}}
        if "changed" in wanted:
            row["changed"] = _changed_texts(table, cell, find)
        row |= _intervals(table, [cell], find, against[1:])
    place = ("backbone", "direction", "testset", "pool", "method", "order", "steps")
    for system, cells in grouped(runs, *place).items():
        about, rows = named(place, system), [runs[cell] for cell in cells]
        for cell, row in zip(cells, rows, strict=True):
            yield {**about, "seed": cell.seed, "statistic": "run", "runs": 1, **row}
        single = {
            *TESTED,
            "difference",
            "difference_low",
            "difference_high",
            "difference_p",
            "closure_low",
            "closure_high",
        }
        for name, statistic in (("mean", mean), ("std", deviation)):
            over = {key: over_runs(statistic, [row[key] for row in rows]) for key in rows[0] if key not in single}
            none = dict.fromkeys(single, NAN) | (_intervals(table, cells, find, against[1:]) if name == "mean" else {})
            yield {**about, "seed": NAN, "statistic": name, "runs": len(rows), **over, **none}


def _run_of_study(table: Table, cell: Cell) -> dict[str, Any]:
    costs, timed = table.costs(cell), Unchecked("a measured time")
    scores = {("comet" if metric == table.main else metric): table.score(cell, metric) for metric in table.metrics}
    kept = {key: costs[key] for key in ("calls", "slots", "passes", "sentences")}
    return {
        **scores,
        **kept,
        **{"mae": costs["length_mae"], "untouched": costs["within_steps"], "tokens": costs["run_tokens"]},
        **{"latency": timed, "latency_batched": timed},
    }


Find = Callable[..., Cell | None]


def _gaps(table: Table, runs: Mapping[Cell, Any], cell: Cell, find: Find, usual: Sequence[Any]) -> dict[str, Any]:
    """Closures and cost by Ratio and Oracle under the system's own order and T, or else the main table's."""
    gaps: dict[str, Any] = dict.fromkeys(("closure", "closure_eos", "closure_best", "cost"), NAN)
    sign = table.sign(table.main)
    for setting in (tuple(usual), (cell.order, cell.steps)):
        oracle, ratio, ratio_eos = (find(cell, name, *setting) for name in ("oracle", "ratio", "ratio_eos"))
        fixed = [one for name in table.params.get("fixed", ()) if (one := find(cell, name, *setting))]
        best = max(fixed, key=lambda one: sign * runs[one]["comet"], default=None)
        for key, rival in (("closure", ratio), ("closure_eos", ratio_eos), ("closure_best", best)):
            if rival and oracle:
                share = closure(*(sign * runs[one]["comet"] for one in (cell, rival, oracle)))
                gaps[key] = share if table.is_gap(oracle, rival) else NAN
        if ratio and oracle:
            gaps["cost"] = runs[cell]["calls"] / runs[ratio]["calls"]
    return gaps


def _changed_texts(table: Table, cell: Cell, find: Find) -> float:
    """The share of texts that are not those of the first backbone with the same system and seed."""
    first = table.cells[0].backbone
    other = find(cell, cell.method, cell.order, cell.steps, first) if cell.backbone != first else None
    if other is None:
        return NAN
    texts, others = ({row["id"]: row["hypothesis"] for row in table.rows(one)} for one in (cell, other))
    return sum(text != others.get(name) for name, text in texts.items()) / len(texts)


def _intervals(table: Table, cells: Sequence[Cell], find: Find, usual: Sequence[Any]) -> dict[str, float]:
    """Of one run, or of the means over runs: the difference from the first backbone, and the limits of the closure."""
    first, wanted, values = table.cells[0].backbone, table.params["columns"], {}
    if "difference" in wanted:
        keys = {"delta": "difference", "ci_low": "difference_low", "ci_high": "difference_high"}
        keys |= {"p_two_sided": "difference_p"}
        others = [find(cell, cell.method, cell.order, cell.steps, first) for cell in cells]
        values |= dict.fromkeys(keys.values(), NAN)
        if None not in others and others != [*cells]:
            scores = (table.aligned(one, cells[0]) for one in (cells, others))
            test = paired(*scores, table.params)
            values |= {column: test[key] for key, column in keys.items()}
    if "closure_interval" in wanted:
        pairs = [
            [
                [find(cell, name, *(setting or cell.get("order", "steps"))) for cell in cells]
                for name in ("ratio", "oracle")
            ]
            for setting in (None, usual)
        ]
        rivals = next((pair for pair in pairs if all(None not in one for one in pair)), None)
        limits = (NAN, NAN)
        if rivals and [*cells] not in rivals:
            columns = [table.sign(table.main) * table.aligned(one, cells[0]) for one in (cells, *rivals)]
            limits = numbers.closure_limits(np.column_stack(columns), table.params)
        values |= named(("closure_low", "closure_high"), limits)
    return values


# --- Reveal orders, and categories of sources.


def orders(table: Table) -> Iterator[Expected]:
    run_keys, main = ("backbone", "direction", "testset", "steps", "seed"), table.params["main"]
    for run, cells in grouped(table.cells, *run_keys).items():
        about, systems = named(run_keys, run), {(cell.method, cell.order): cell for cell in cells}
        for (method, order), cell in systems.items():
            values = {metric: table.score(cell, metric) for metric in table.metrics}
            values |= {key: table.costs(cell)[key] for key in ("sentences", "calls", "slots", "passes")}
            if method == "oracle" and order != main:
                test = table.test(cell, [systems["oracle", main]])
                values |= {key: test[key] for key in ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")}
            for metric, value in values.items():
                yield {**about, "method": method, "order": order, "metric": metric, "value": value}
        for metric, value in _spans(table, systems).items():
            yield {**about, "method": "", "order": "", "metric": metric, "value": value}


def _spans(table: Table, systems: Mapping[tuple[str, str], Cell]) -> dict[str, float]:
    main, described = table.params["main"], table.params["orders"]
    scores = {system: table.score(cell, table.main) for system, cell in systems.items()}
    of_orders = {order: score for (method, order), score in scores.items() if method == "oracle"}
    guided = [score for order, score in of_orders.items() if described[order]["source_guided"]]

    def span(values: Iterable[Any]) -> float:
        values = [*values]
        return max(values) - min(values) if values else NAN

    spans = {"source_guided_span": span(guided), "main_and_guided_span": span([*guided, of_orders[main]])}
    spans["span"] = span(of_orders.values())
    spans["length_span"] = span(score for (_, order), score in scores.items() if order == main)
    for name in ("oracle", "ev"):
        if (name, main) in scores and ("ratio", main) in scores:
            lead, width = scores[name, main] - scores["ratio", main], spans["source_guided_span"]
            spans |= {f"{name}_ratio": lead, f"{name}_ratio_over_span": lead / width if width else NAN}
    return spans
