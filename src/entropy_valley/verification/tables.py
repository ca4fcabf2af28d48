"""The rows of every table and figure, computed again from the rows of the sets: a function for each kind."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from entropy_valley import files
from entropy_valley.data.categories import CATEGORIES, categories_of
from entropy_valley.verification import sets
from entropy_valley.verification.cells import (
    FIXED,
    INTERVAL,
    LENGTH_ERROR,
    LENGTHS,
    NAN,
    PLACE,
    RUN,
    SETTING,
    Cell,
    Expected,
    Table,
    by_method,
    closure,
    deviation,
    grouped,
    mean,
    over_runs,
    paired,
    resampled_means,
    shared_seeds,
    spearman,
    summary,
)
from entropy_valley.verification.folder import MOST_BYTES, NotAtHandError, Unchecked

PAIRS = (("ev", "ratio"), ("ev", "ratio_eos"), ("oracle", "ev"), ("oracle", "ratio"), ("oracle", "ratio_eos"))


def tidy(about: Expected, values: Expected) -> Iterator[Expected]:
    """A row for each value."""
    for metric, value in values.items():
        yield {**about, "metric": metric, "value": value}


# --- Summaries over runs: main, crossbb, matrix, budgets, readings, hero.


def main_table(table: Table) -> Iterator[Expected]:
    """With the share of sentences that have another score than under the readings of the backbone's origin, and with
    the mean slots of a canvas."""
    cells = {cell.get(*RUN, "method"): cell for cell in table.cells}
    shares: dict[tuple[Any, ...], list[float]] = {}
    canvases: dict[tuple[Any, ...], list[float]] = {}
    for cell in table.cells:
        canvases.setdefault(cell.get(*SETTING, "method"), []).append(mean([row["length"] for row in table.rows(cell)]))
    for cell in table.cells if "origins" in table.params else ():
        origin = table.params["origins"][cell.backbone]
        if origin != cell.backbone:
            scores = table.sentences(cell)
            others = table.sentences(cells[origin, *cell.get(*RUN, "method")[1:]])
            share = sum(score != others.get(name) for name, score in scores.items()) / len(scores)
            shares.setdefault(cell.get(*SETTING, "method"), []).append(share)
    for row in summary(table, table.cells, table.metrics):
        system = (*(row[key] for key in SETTING), row["method"])
        changed = mean(shares.get(system, ())) if row["metric"] == table.main else NAN
        yield {**row, "changed": changed, "canvas": mean(canvases[system])}


def hero(table: Table) -> Iterator[Expected]:
    """A: the length methods; B: with autoregressive systems, over shared seeds; C: lengths and orders."""
    diffusion = [cell for cell in table.cells if cell.steps]
    for row in summary(table, diffusion, [table.main]):
        yield {**row, "panel": "A"}
    if len(diffusion) < len(table.cells):
        for row in summary(table, shared_seeds(table.cells), [table.main]):
            yield {**row, "panel": "B"}
    if table.params.get("sweep"):
        for row in _orders_of_hero(table, Table(table.folder, table.place, table.params["sweep"])):
            yield {**row, "panel": "C"}


def _orders_of_hero(table: Table, sweep: Table) -> Iterator[Expected]:
    first = sweep.cells[0]
    for row in orders(sweep):
        is_shown = row["metric"] in (sweep.main, "length_span", "source_guided_span")
        if is_shown and all(row[key] == getattr(first, key) for key in ("backbone", *PLACE, "steps", "seed")):
            yield {**row, "mean": row["value"], "std": NAN, "runs": 1}
    place = ("backbone", *PLACE)
    cells = [cell for cell in table.cells if cell.get(*place) == first.get(*place) and cell.method in LENGTHS]
    means = [*summary(table, cells, [table.main])]
    if means and max(row["runs"] for row in means) > 1:
        shown = (*SETTING, "method", "metric", "mean", "std", "runs")
        yield from ({**{key: row[key] for key in shown}, "seed": NAN} for row in means)
        ((setting, _),) = grouped([first], *SETTING)
        spread = max(row["mean"] for row in means) - min(row["mean"] for row in means)
        about = {**setting, "order": "", "method": "", "metric": "length_span", "seed": NAN}
        yield {**about, "mean": spread, "std": NAN, "runs": means[0]["runs"]}


# --- Paired tests: full_significance and ar_reference.


def _with_printed(test: Mapping[str, Any]) -> dict[str, Any]:
    printed = {}
    for key, sides in (("p_one_sided", 1), ("p_two_sided", 2)):
        p = test[key]
        text = f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}" if p else f"< {sides / test['resamples']:g}"
        printed[f"{key}_printed"] = text.replace("-", "−")
    return {**test, **printed}


def significance(table: Table) -> Iterator[Expected]:
    for run, cells in grouped(table.cells, *RUN):
        methods = by_method(cells)
        for first, second in PAIRS:
            if first in methods and second in methods:
                test = _with_printed(table.test(methods[first], [methods[second]]))
                yield {**run, "first": first, "second": second, "metric": table.main, **test}


def ar_reference(table: Table) -> Iterator[Expected]:
    for row in summary(table, shared_seeds(table.cells), table.metrics):
        yield {**row, "against": "", "seed": NAN}
    leads: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    beams = [cell for cell in table.cells if not cell.steps]
    for run, cells in grouped([cell for cell in table.cells if cell.method == "ev"], *RUN):
        for cell, beam in itertools.product(cells, beams):
            if beam.get(*PLACE, "seed") == cell.get(*PLACE, "seed"):
                test = _with_printed(table.test(cell, [beam]))
                about = {**run, "method": "ev", "against": beam.backbone, "metric": table.main}
                rows = leads.setdefault((*cell.get(*SETTING), beam.backbone, beam.method), [])
                rows.append({**about, **test, "mean": test["delta"], "std": NAN, "runs": 1})
                yield rows[-1]
    for rows in leads.values():
        about = {key: rows[0][key] for key in (*SETTING, "method", "against", "metric")}
        yield {**about, "mean": mean([row["delta"] for row in rows]), "runs": len(rows)}


# --- Studies of systems.

OF_ONE = ("difference", "difference_low", "difference_high", "difference_p", "closure_low", "closure_high")


def study(table: Table) -> Iterator[Expected]:
    """A row for each run, then mean and deviation over runs."""
    systems = Systems(table)
    place = ("backbone", *PLACE, "pool", "method", "order", "steps")
    rows = {cell: systems.row(cell) for cell in table.cells}
    for system, cells in grouped(table.cells, *place):
        for cell in cells:
            yield {**system, "seed": cell.seed, "statistic": "run", "runs": 1, **rows[cell]}
        single = {*INTERVAL, "wilcoxon_p", *OF_ONE}
        for name, statistic in (("mean", mean), ("std", deviation)):
            keys = [key for key in rows[cells[0]] if key not in single]
            over = {key: over_runs(statistic, [rows[cell][key] for cell in cells]) for key in keys}
            none = dict.fromkeys(single, NAN) | (systems.intervals(cells) if name == "mean" else {})
            yield {**system, "seed": NAN, "statistic": name, "runs": len(cells), **over, **none}


class Systems:
    """The systems of a study, and those that they are compared with in the same run."""

    def __init__(self, table: Table) -> None:
        self.table, self.against, self.columns = table, table.params["against"], table.params["columns"]
        self.first = table.cells[0].backbone
        self.cells = {cell.get("backbone", *self.KEYS): cell for cell in table.cells}

    KEYS = (*PLACE, "pool", "seed", "method", "order", "steps")

    def find(self, cell: Cell, system: Sequence[Any], backbone: str | None = None) -> Cell | None:
        """Another ``system`` of the run: a method, order and steps."""
        return self.cells.get((backbone or cell.backbone, *cell.get(*self.KEYS[:-3]), *system))

    def all(self, cells: Sequence[Cell], systems: Sequence[Sequence[Any]], backbone: str | None = None) -> list[Cell]:
        """Another system in the run of each cell; none where a run has it not."""
        others = [self.find(cell, system, backbone) for cell, system in zip(cells, systems, strict=True)]
        return [cell for cell in others if cell] if all(others) else []

    def row(self, cell: Cell) -> dict[str, Any]:
        table, costs, timed = self.table, self.table.costs(cell), Unchecked("a measured time")
        row = {("comet" if metric == table.main else metric): table.score(cell, metric) for metric in table.metrics}
        row |= {key: costs[key] for key in ("calls", "slots", "passes", "sentences")}
        row |= {"mae": costs["length_mae"], "untouched": costs["within_steps"], "tokens": costs["run_tokens"]}
        row |= {"latency": timed, "latency_batched": timed, **self._gaps(cell)}
        first = self.find(cell, self.against)
        test = table.test(first, [cell]) if first and first != cell else {}
        row |= {"lead": test.get("delta", NAN), **{key: test.get(key, NAN) for key in (*INTERVAL, "wilcoxon_p")}}
        if "changed" in self.columns:
            row["changed"] = self._changed_texts(cell)
        return row | self.intervals([cell])

    def _gaps(self, cell: Cell) -> dict[str, Any]:
        """Closures and cost by Ratio and Oracle under the system's own order and T, or else the main table's."""
        table, gaps = self.table, dict.fromkeys(("closure", "closure_eos", "closure_best", "cost"), NAN)

        def score(one: Cell) -> float:
            if isinstance(number := table.score(one, table.main), Unchecked):
                raise NotAtHandError(number.reason)
            return number

        for setting in (self.against[1:], cell.get("order", "steps")):
            oracle, ratio, ratio_eos = (self.find(cell, (name, *setting)) for name in ("oracle", "ratio", "ratio_eos"))
            fixed = [one for name in table.params.get("fixed", ()) if (one := self.find(cell, (name, *setting)))]
            best = max(fixed, key=score, default=None)
            for key, rival in (("closure", ratio), ("closure_eos", ratio_eos), ("closure_best", best)):
                if rival and oracle:
                    share = closure(*map(score, (cell, rival, oracle)))
                    gaps[key] = share if table.is_gap(oracle, rival) else NAN
            if ratio and oracle:
                gaps["cost"] = table.costs(cell)["calls"] / table.costs(ratio)["calls"]
        return gaps

    def _changed_texts(self, cell: Cell) -> float:
        """The share of texts that are not those of the first backbone with the same system and seed."""
        other = self.find(cell, cell.get("method", "order", "steps"), self.first)
        if other is None or cell.backbone == self.first:
            return NAN
        texts, others = self.table.texts(cell), self.table.texts(other)
        return sum(text != others.get(name) for name, text in texts.items()) / len(texts)

    def intervals(self, cells: Sequence[Cell]) -> dict[str, float]:
        """Of one run, or of the means over runs: the difference from the first backbone, and the limits of the
        closure."""
        table = self.table
        values: dict[str, float] = {}
        if "difference" in self.columns:
            keys = ("delta", "ci_low", "ci_high", "p_two_sided")
            others = self.all(cells, [cell.get("method", "order", "steps") for cell in cells], self.first)
            test = dict.fromkeys(keys, NAN)
            if others and others != [*cells]:
                test = paired(table.aligned(cells, cells[0]), table.aligned(others, cells[0]), table.params)
            values |= dict(zip(OF_ONE[:4], (test[key] for key in keys), strict=True))
        if "closure_interval" in self.columns:
            limits = (NAN, NAN)
            for setting in (self.against[1:], cells[0].get("order", "steps")):  # the latter, where both are there
                rivals = [self.all(cells, [(name, *setting)] * len(cells)) for name in ("ratio", "oracle")]
                if all(rivals):
                    limits = (NAN, NAN) if [*cells] in rivals else self._closure_limits(cells, *rivals)
            values |= dict(zip(OF_ONE[4:], limits, strict=True))
        return values

    def _closure_limits(self, *systems: Sequence[Cell]) -> tuple[float, float]:
        """95 % limits of the closure of a system's mean score between those of Ratio and Oracle."""
        table, like = self.table, systems[0][0]
        columns = [table.aligned(cells, like) for cells in systems]
        closures = np.array([closure(*row) for row in resampled_means(np.column_stack(columns), table.params)])
        if np.isnan(closures).mean() > 0.025:
            return NAN, NAN
        low, high = np.nanquantile(closures, [0.025, 0.975])
        return float(low), float(high)


# --- Length methods over all runs: pooled, ceiling.

COSTS = {"length_mae": "mae", "calls": "calls", "passes": "passes"}


def pooled(table: Table) -> Iterator[Expected]:
    """A row for each method of all backbones together and of each, and perhaps the best of some by hindsight."""
    backbones = [name["backbone"] for name, _ in grouped(table.cells, "backbone")]
    for backbone in ["all", *backbones] if len(backbones) > 1 else backbones:
        cells = [cell for cell in table.cells if backbone in ("all", cell.backbone)]
        methods = list(dict.fromkeys(cell.method for cell in cells))
        best_of = [methods.index(name) for name in table.params.get("best_of", ())]
        places: list[list[tuple[int, np.ndarray]]] = []  # of each the runs: their seed, and (methods, sentences) scores
        for _, in_place in grouped(cells, *PLACE):
            places.append([])
            for run, in_run in grouped(in_place, "backbone", "seed"):
                named = by_method(in_run)
                scores = np.array([table.aligned([named[name]], named["oracle"]) for name in methods])
                scores = np.vstack([scores, scores[best_of].max(axis=0)]) if best_of else scores
                places[-1].append((run["seed"], scores))
        means = np.array([scores.mean(axis=1) for runs in places for _, scores in runs])  # (runs, methods)
        every = np.hstack([scores for runs in places for _, scores in runs])  # (methods, sentences of all runs)
        names = [*methods, *["hindsight"] * bool(best_of)]
        oracle, against = methods.index("oracle"), methods.index(table.params["against"])
        shares = _shares(table, names, places)
        for at, method in enumerate(names):
            costs = [table.costs(cell) for cell in cells if cell.method == method]
            yield {
                "backbone": backbone,
                "method": method,
                "runs": len(means),
                **shares[method],
                **{key: over_runs(mean, [cost[own] for cost in costs]) for own, key in COSTS.items()},
                "leads": int((means[:, at] > means[:, against]).sum()),
                "above": float((every[at] > every[oracle]).mean()),
                "below": float((every[at] < every[oracle]).mean()),
            }


def _shares(
    table: Table, names: Sequence[str], places: Sequence[Sequence[tuple[int, np.ndarray]]]
) -> dict[str, dict[str, float]]:
    """By method and baseline the share of the reference's lead over it, its limits, its deviation over seeds."""

    def total(*seeds: int) -> np.ndarray:
        of_places = [[scores.mean(axis=1) for seed, scores in runs if seed in seeds] for runs in places]
        return np.mean([np.mean(runs, axis=0) for runs in of_places if runs], axis=0)

    seeds = sorted({seed for runs in places for seed, _ in runs})
    of_sentences = (np.mean([scores for _, scores in runs], axis=0).T for runs in places)
    drawn = np.sum([resampled_means(one, table.params) for one in of_sentences], axis=0)  # (resamples, methods)
    values: dict[str, dict[str, float]] = {name: {} for name in names}
    for (at, name), (baseline, prefix) in itertools.product(enumerate(names), FIXED.items()):
        columns = [at, names.index(baseline), names.index("oracle")]
        shares = [NAN] * 4
        if np.quantile(drawn[:, columns[2]] - drawn[:, columns[1]], 0.025) > 0:
            low, high = np.nanquantile([closure(*row) for row in drawn[:, columns]], [0.025, 0.975])
            spread = deviation([closure(*total(seed)[columns]) for seed in seeds])
            shares = [closure(*total(*seeds)[columns]), float(low), float(high), spread]
        values[name] |= dict(zip((prefix, *(f"{prefix}_{one}" for one in ("low", "high", "std"))), shares, strict=True))
    return values


# --- Reveal orders, and categories of sources.


def orders(table: Table) -> Iterator[Expected]:
    main = table.params["main"]
    for run, cells in grouped(table.cells, "backbone", *PLACE, "steps", "seed"):
        systems = {(cell.method, cell.order): cell for cell in cells}
        for (method, order), cell in systems.items():
            costs, test = table.costs(cell), {}
            values = {metric: table.score(cell, metric) for metric in table.metrics}
            values |= {key: costs[key] for key in ("sentences", "calls", "slots", "passes")}
            if method == "oracle" and order != main:
                test = table.test(cell, [systems["oracle", main]])
            values |= {key: test[key] for key in ("delta", *INTERVAL) if test}
            yield from tidy({**run, "method": method, "order": order}, values)
        scores = {system: table.score(cell, table.main) for system, cell in systems.items()}
        yield from tidy({**run, "method": "", "order": ""}, _spans(scores, main, table.params["orders"]))


def _spans(scores: Mapping[tuple[str, str], Any], main: str, described: Mapping[str, Any]) -> dict[str, float]:
    """How far the scores of orders and of length methods are apart; ``scores`` by method and order."""
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


def categories(table: Table) -> Iterator[Expected]:
    """Two reveal orders by what the source contains."""
    main = table.params["main"]
    (other,) = {cell.order for cell in table.cells} - {main}
    for run, cells in grouped(table.cells, "backbone", *PLACE, "steps", "seed"):
        systems = {cell.order: cell for cell in cells if cell.method == "oracle"}
        first, second = systems[other], systems[main]
        pairs = {name: (row["source"], row["target"]) for name, row in table.testset(second).items()}
        rules = (run["direction"], table.params["challenge"])
        of_sentence = {name: categories_of(pair, *rules) for name, pair in pairs.items()}
        for category in CATEGORIES:
            ids = [name for name, listed in of_sentence.items() if category in listed]
            yield from tidy({**run, "category": category}, _orders_compared(table, first, second, ids))
        values = _orders_compared(table, first, second, [*of_sentence])
        if of_sentence:
            concentrations = {row["id"]: row["concentration"] for row in table.diagnostics(second, "sig")}
            leads = [table.sentences(first)[name] - table.sentences(second)[name] for name in of_sentence]
            values |= spearman([concentrations[name] for name in of_sentence], leads)
        yield from tidy({**run, "category": "overall"}, values)


def _orders_compared(table: Table, other: Cell, main: Cell, ids: Sequence[str]) -> dict[str, Any]:
    if not ids:
        return {"sentences": 0}
    of_other, of_main = ([table.sentences(cell)[name] for name in ids] for cell in (other, main))
    test = paired(of_other, of_main, table.params)
    values = {"sentences": len(ids), "other": mean(of_other), "main": mean(of_main)}
    return values | {key: test[key] for key in ("delta", *INTERVAL)}


# --- What the outputs keep of the source, and scores by the length ratio of the reference.

ITEMS: dict[str, Callable[[str], list[str]]] = {
    "placeholder": re.compile(r"#[A-Z_]+#").findall,
    "number": re.compile(r"\b\d+(?:[.,]\d+)*%?\b").findall,
    "entity": lambda text: re.findall(r"\b[A-Z]\w+\b", re.sub(r"#[A-Z_]+#", " ", " ".join(text.split()[1:]))),
}


def _kept(items: Sequence[str], text: str) -> float:
    """The share of a source's items that an output has."""
    return sum(item in text for item in items) / len(items) if items else NAN


def coverage(table: Table) -> Iterator[Expected]:
    """Means over runs by sentence, then over sentences; and EV's lead over each fixed ratio."""
    bootstrap = {"resamples": table.params["resamples"], "bootstrap_seed": table.params["seed"]}
    for place, cells in grouped(table.cells, *PLACE):
        methods = {key["method"]: runs for key, runs in grouped(cells, "method")}
        for block, item, measure in [*_retention(table, cells[0]), *_buckets(table, cells[0])]:
            values = {method: [measure(cell) for cell in runs] for method, runs in methods.items()}
            means = {name: {one: mean([run[one] for run in runs]) for one in runs[0]} for name, runs in values.items()}
            for method, scores in means.items():
                about = {**place, **bootstrap, "block": block, "item": item, "method": method}
                row = {**about, "sentences": len(scores), "runs": len(values[method]), "mean": mean([*scores.values()])}
                test = {}
                if method in FIXED and scores:
                    test = paired([means["ev"][name] for name in scores], [*scores.values()], table.params)
                yield row | {key: test.get(key, NAN) for key in ("delta", *INTERVAL)}


Block = tuple[str, str, Callable[[Cell], dict[str, float]]]  # its name, its item, and what of a cell's sentences counts


def _retention(table: Table, first: Cell) -> Iterator[Block]:
    def measure(items: Mapping[str, Sequence[str]], cell: Cell) -> dict[str, float]:
        texts = table.texts(cell)
        return {name: _kept(listed, texts[name]) for name, listed in items.items()}

    for item, extract in ITEMS.items():
        if item != "entity" or first.direction.split("-")[0] in ("en", "fr"):
            items = {name: listed for name, row in table.testset(first).items() if (listed := extract(row["source"]))}
            yield "retention", item, partial(measure, items)


def _buckets(table: Table, first: Cell) -> Iterator[Block]:
    def measure(ids: Sequence[str], cell: Cell) -> dict[str, float]:
        return {name: table.sentences(cell)[name] for name in ids}

    if edges := table.params["buckets"].get(first.direction):
        tokens, eos = table.tokens(first).items(), int(table.params["eos"])
        inner = [f"{low:g}<=r<{high:g}" for low, high in itertools.pairwise(edges)]
        for number, name in enumerate([f"r<{edges[0]:g}", *inner, f"r>={edges[-1]:g}"]):
            ids = [one for one, (x, y) in tokens if sum((y + eos) / max(1, x) >= edge for edge in edges) == number]
            yield "bucket", name, partial(measure, ids)


def faithfulness(table: Table) -> Iterator[Expected]:
    """Of :func:`coverage` the placeholders, the numbers, and the first and the last group."""
    rows = [*coverage(table)]
    for row in rows:
        groups = [one["item"] for one in rows if one["direction"] == row["direction"] and one["block"] == "bucket"]
        if row["item"] in ("placeholder", "number", *groups[:1], *groups[-1:]):
            yield row


def failure_buckets(table: Table) -> Iterator[Expected]:
    """Where EV loses against a fixed ratio: the sentences, by what may be the cause."""
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run, cells in grouped(table.cells, *PLACE, "seed"):
        methods = by_method(cells)
        scores, tokens = table.sentences(methods["ev"]), table.tokens(methods["ev"])
        canvases = {row["id"]: row["canvas"]["candidates"] for row in table.rows(methods["ev"])}
        causes = {name: _cause(candidates, *tokens[name]) for name, candidates in canvases.items()}
        for rival in (name for name in FIXED if name in methods):
            others = table.sentences(methods[rival])
            lost = {name: score - others[name] for name, score in scores.items() if score < others[name]}
            for cause in ("very_short", "overshoot", "under_compression", "within_grid", "all"):
                deltas = [delta for name, delta in lost.items() if cause in ("all", causes[name])]
                row = {"sentences": len(scores), "losses": len(deltas), "delta": mean(deltas)}
                row["share"] = len(deltas) / len(lost) if lost else NAN
                rows.setdefault((run["direction"], run["testset"], rival, cause), []).append(row)
                yield {**run, "statistic": "run", "runs": 1, "rival": rival, "cause": cause, **row}
    for about, of_runs in rows.items():
        over = {key: over_runs(mean, [row[key] for row in of_runs]) for key in of_runs[0]}
        head = dict(zip((*PLACE, "rival", "cause"), about, strict=True))
        yield {**head, "seed": NAN, "statistic": "mean", "runs": len(of_runs), **over}


def _cause(candidates: Sequence[int], source: int, target: int) -> str:
    if source <= 3:
        return "very_short"
    if target + 1 < min(candidates):
        return "overshoot"
    return "under_compression" if target + 1 > max(candidates) else "within_grid"


# --- Lengths beside scores: the table and the points of its figure.


REASSIGNED = "ev_reassigned_1"


def dissociation(table: Table) -> Iterator[Expected]:
    """Means, then how much each part of the sentences adds to a lead, with its limits: over runs, and of each run."""
    yield from _lengths_and_scores(table)
    for setting, cells in grouped(table.cells, *SETTING):
        runs = {about["seed"]: by_method(of_run) for about, of_run in grouped(cells, "seed")}
        for name, baseline in itertools.product(("ev", REASSIGNED), FIXED):
            seeds = [seed for seed, methods in runs.items() if {name, baseline} <= {*methods}]
            for of_row in ([seeds] if seeds else []) + [[seed] for seed in seeds]:
                about = {**setting, "method": name, "metric": "", "baseline": baseline, "id": ""}
                about |= {"seed": NAN if of_row is seeds else of_row[0], "runs": len(of_row)}
                pairs = [(runs[seed][name], runs[seed][baseline], runs[seed]["oracle"]) for seed in of_row]
                yield from ({**about, **row} for row in _parts_of_lead(table, pairs))


def _parts_of_lead(table: Table, pairs: Sequence[tuple[Cell, Cell, Cell]]) -> Iterator[Expected]:
    """A row for each part of the sentences; each pair is a run's method, its baseline and its Oracle."""
    ids = [*table.sentences(pairs[0][0])]
    leads, nearer = np.empty((len(ids), len(pairs))), np.empty((len(ids), len(pairs)))
    for column, (cell, other, oracle) in enumerate(pairs):
        scores, of_other = table.sentences(cell), table.sentences(other)
        errors, others = table.errors(cell, oracle), table.errors(other, oracle)
        leads[:, column] = [scores[name] - of_other[name] for name in ids]
        nearer[:, column] = [others[name] - errors[name] for name in ids]
    parts = {"nearer": nearer > 0, "equal": nearer == 0, "farther": nearer < 0, "not_nearer": nearer <= 0}
    parts["all"] = np.ones_like(nearer, dtype=bool)
    lead = leads.mean(axis=1)
    means_of_all = resampled_means(lead, table.params)
    leads_at_all = np.quantile(means_of_all, 0.025) > 0
    for canvas, part in parts.items():
        of_part = np.column_stack([(leads * part).mean(axis=1), part.mean(axis=1)])
        added, size = of_part.mean(axis=0)
        drawn, sizes = resampled_means(of_part, table.params).T
        row = {"canvas": canvas, "sentences": part.sum() / len(pairs)}
        row |= _with_limits("adds", added, drawn)
        with np.errstate(divide="ignore", invalid="ignore"):
            row |= _with_limits("lead", added / size if size else NAN, drawn / sizes)
            row |= _with_limits("share", added / lead.mean() if leads_at_all else NAN, drawn / means_of_all)
        yield row


def _with_limits(name: str, value: float, drawn: np.ndarray) -> dict[str, float]:
    low, high = (NAN, NAN) if math.isnan(value) else np.nanquantile(drawn, [0.025, 0.975])
    return {name: float(value), f"{name}_low": float(low), f"{name}_high": float(high)}


def _lengths_and_scores(table: Table) -> Iterator[Expected]:
    oracles = {cell.get(*RUN): cell for cell in table.cells if cell.method == "oracle"}

    def value(cell: Cell, metric: str) -> float | Unchecked:
        if metric == table.main:
            return table.score(cell, metric)
        if metric == "full_canvas":
            return mean([len(row["tokens"]) + 1 == row["length"] for row in table.rows(cell)])
        errors = [*table.errors(cell, oracles[cell.get(*RUN)]).values()]
        return mean(errors if metric == LENGTH_ERROR else [not error for error in errors])

    for row in summary(table, table.cells, [table.main, LENGTH_ERROR, "on_reference", "full_canvas"], value):
        yield {**row, "baseline": "", "canvas": "", "id": "", "seed": NAN}


def points(table: Table) -> Iterator[Expected]:
    """The sentences of the first seed of each place, then the means, then the parts of leads."""
    for place, cells in grouped(table.cells, "backbone", *PLACE):
        methods = by_method(cell for cell in cells if cell.seed == cells[0].seed)
        for name in LENGTHS:
            scores = table.sentences(methods[name])
            for sentence, error in table.errors(methods[name], methods["oracle"]).items():
                about = {**place, "method": name, "metric": "", "baseline": "", "canvas": "", "id": sentence}
                yield {**about, "error": error, "score": scores[sentence]}
    yield from (row for row in dissociation(table) if row["method"] in LENGTHS or row["canvas"])


# --- Three sentences of a run.

CASES: Sequence[tuple[str, Callable[[Expected], bool], Callable[[Expected], Any]]] = (  # which sentences; their size
    ("largest win", lambda one: one["delta"] > 0, lambda one: one["delta"]),
    ("largest win in what is kept", lambda one: one["more_kept"] > 0, lambda one: (one["more_kept"], one["delta"])),
    ("largest loss beyond the grid", lambda one: one["beyond"] and one["delta"] < 0, lambda one: -one["delta"]),
)


def cases(table: Table) -> Iterator[Expected]:
    ((run, _),) = grouped(table.cells, "backbone", *PLACE, "seed")
    rows, taken = [*_examples(table, by_method(table.cells))], []
    for name in table.params.get("named", ()):
        yield from ({**run, "case": name, **row} for row in rows if row["id"] == name)
    if table.params.get("named"):
        return
    for case, counts, size in CASES:
        fitting = [one for one in rows if counts(one) and one not in taken]
        if fitting:
            taken.append(max(fitting, key=size))
            yield {**run, "case": case, **taken[-1]}


def _examples(table: Table, cells: Mapping[str, Cell]) -> Iterator[dict[str, Any]]:
    testset = table.testset(cells["ev"])
    outputs = {method: {row["id"]: row for row in table.rows(cells[method])} for method in LENGTHS}
    kind = "placeholder" if any(ITEMS["placeholder"](row["source"]) for row in testset.values()) else "number"
    for name, pair in testset.items():
        row: dict[str, Any] = {"id": name, "source": pair["source"], "reference": pair["target"], "items": kind}
        for method in LENGTHS:
            output, score = outputs[method][name], table.sentences(cells[method])[name]
            row |= {f"{method}_slots": output["canvas"]["length"], f"{method}_output": output["hypothesis"]}
            row |= {f"{method}_score": score}
            row[f"{method}_kept"] = _kept(ITEMS[kind](pair["source"]), output["hypothesis"])
        canvas = outputs["ev"][name]["canvas"]
        for key, values in (("candidates", canvas["candidates"]), ("entropies", canvas["scores"])):
            row[key] = " ".join(f"{value:g}" for value in values)
        row["beyond"] = not min(canvas["candidates"]) <= row["oracle_slots"] <= max(canvas["candidates"])
        row["delta"] = row["ev_score"] - row["ratio_score"]
        yield row | {"more_kept": row["ev_kept"] - row["ratio_kept"]}


# --- EV's controls, and curves of all-mask canvases.


def checks(table: Table) -> Iterator[Expected]:
    alternatives = ("ev_sum", "ev_normalised", "ev_median")
    lines: dict[tuple[str, ...], list[Expected]] = {}
    for row in curves(table):
        if row["axis"] == "ratios":
            lines.setdefault((row["direction"], row["testset"]), []).append(row)
    for (direction, testset), line in lines.items():
        about = {"direction": direction, "testset": testset, "seed": NAN, "check": "sweep"}
        for item, point in (("first", line[0]), ("lowest", min(line, key=lambda one: one["mean"])), ("last", line[-1])):
            values = {"ratio": point["at"], "entropy": point["mean"], "sentences": point["sentences"]}
            yield from tidy({**about, "item": item}, values)
    for place, cells in grouped([cell for cell in table.cells if cell.method == "ev"], *PLACE):
        for number, (ratio, counts) in enumerate(_chosen_ratios(table, cells).items(), 1):
            shares = [count / len(table.rows(cell)) for count, cell in zip(counts, cells, strict=True)]
            about = {**place, "seed": NAN, "check": "chosen", "item": str(number)}
            yield from tidy(about, {"ratio": ratio, "count": mean(counts), "share": mean(shares)})
    for row in summary(table, [cell for cell in table.cells if cell.method in ("ev", *alternatives)], [table.main]):
        about = {**{key: row[key] for key in PLACE}, "seed": NAN, "check": "score", "item": row["method"]}
        yield from tidy(about, {key: row[key] for key in ("mean", "std", "runs")})
    for run, cells in grouped(table.cells, *RUN):
        groups: dict[str, list[Cell]] = {}
        for cell in cells:
            match = re.fullmatch(r"(ev_reassigned(?:_deciles)?)_\d+", cell.method)
            if match or cell.method in alternatives:
                groups.setdefault(match[1] if match else cell.method, []).append(cell)
        for name, others in groups.items():
            about = {**{key: run[key] for key in (*PLACE, "seed")}, "check": "test", "item": name}
            yield from tidy(about, {**table.test(by_method(cells)["ev"], others), "systems": len(others)})


def _chosen_ratios(table: Table, cells: Sequence[Cell]) -> dict[float, list[int]]:
    """By ratio of EV's grid the sentences of each run that take it; of ratios with one canvas the smallest."""
    chosen = {ratio: [0] * len(cells) for ratio in sorted(table.params["grids"][cells[0].direction])}
    for number, cell in enumerate(cells):
        tokens = table.tokens(cell)
        for row in table.rows(cell):
            source, length = tokens[row["id"]][0], row["canvas"]["length"]
            for ratio in chosen:
                if length in [sets.candidate(ratio, source, {"exact": exact}) for exact in (True, False)]:
                    chosen[ratio][number] += 1
                    break
            else:
                raise NotAtHandError(f"a canvas of {length} slots is not in EV's grid")
    return chosen


def curves(table: Table) -> Iterator[Expected]:
    """Means over runs of the curves that the diagnostics of each run have."""
    lines: dict[tuple[Any, ...], list[Expected]] = {}
    for _, cells in grouped(table.cells, "backbone", *PLACE, "seed"):
        for axis in ("offsets", "offsets_complete", "ratios"):
            for point in table.diagnostics(cells[0], "valley")[axis]:
                lines.setdefault((*cells[0].get("backbone", *PLACE), axis, point["at"]), []).append(point)
    for about, of_runs in lines.items():
        means, error = [point["mean"] for point in of_runs], of_runs[0]["standard_error"]
        several = len(of_runs) > 1
        centre, reach = mean(means), deviation(means) if several else 1.96 * (NAN if error is None else error)
        row = dict(zip(("backbone", *PLACE, "axis", "at"), about, strict=True)) | {"mean": centre, "runs": len(of_runs)}
        row |= {"low": centre - reach, "high": centre + reach}
        row["spread"] = "std over runs" if several else "95% of the mean over sentences"
        for key in ("sentences", "mean_length", "lowest"):
            row[key] = mean([point[key] for point in of_runs if key in point])
        yield row


# --- Settings and counts beside results. ``stored`` are the rows of the table's own file: for what cannot be computed
# again, of which their keys alone are used.


def cost(table: Table, stored: Sequence[Expected]) -> Iterator[Expected]:
    measured, papers = Unchecked("a measured time"), Unchecked("a number of the paper")
    for setting, cells in grouped(table.cells, *SETTING):
        calls, direction = mean([table.costs(cell)["calls"] for cell in cells]), setting["direction"]
        for budget in (32, 64, 128):
            about = {"direction": direction, "testset": setting["testset"], "item": f"T = {budget}", "paper": papers}
            yield {**about, "part": "probe_share", "here": (calls - setting["steps"]) / budget}
            yield {**about, "part": "probe_cap", "here": table.params["candidates"][direction] / budget}
    for row in stored:
        if row["part"] not in ("probe_share", "probe_cap"):
            yield {**row, "here": measured, "paper": papers}


def corpus(table: Table, stored: Sequence[Expected]) -> Iterator[Expected]:
    """Pairs that were drawn, and their length ratios; which were dropped only the data set could tell."""
    dropped = Unchecked("pairs of a data set that is not among the results")
    for direction in table.params["directions"]:
        folder, pairs = table.folder.root / "corpus" / direction, {}
        for part in ("train", "dev"):
            if not (path := folder / f"{part}.jsonl").exists():
                raise NotAtHandError("training pairs that are not among the results")
            pairs[part] = files.read_jsonl(files.regular(path, MOST_BYTES), ("source", "target"))
        for row in stored:
            if row["direction"] == direction and not row["backbone"]:
                yield {**row, "value": len(pairs[row["metric"]]) if row["metric"] in pairs else dropped}
        for backbone in files.read_json(folder / "length_ratios.json", files.MOST):
            for name, value in _length_ratios(table, backbone, pairs["train"]).items():
                metric = f"length_ratio_{name}"
                yield {"direction": direction, "backbone": backbone, "metric": metric, "value": value}


def _length_ratios(table: Table, backbone: str, pairs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    percentiles = {f"p{percent}": percent for percent in (10, 30, 50, 70, 90)}
    sources, targets = (table.folder.count(backbone, [pair[side] for pair in pairs]) for side in ("source", "target"))
    if sources is None or targets is None:
        return dict.fromkeys(("median", "mean", "pairs", *percentiles), sets.NO_TOKENIZER)
    ratios = [target / source for source, target in zip(sources, targets, strict=True) if source]
    values = {"median": float(np.median(ratios)), "mean": math.fsum(ratios) / len(ratios), "pairs": len(ratios)}
    return values | {name: float(np.percentile(ratios, percent)) for name, percent in percentiles.items()}


def dream_instruct(table: Table) -> Iterator[Expected]:
    columns = ("label", "prompt", "training", "shifted", "natural_shift")
    for name, variant in table.params["variants"].items():
        about = {"backbone": name, **{key: variant[key] for key in columns}}
        cells = [cell for cell in table.cells if cell.backbone == name]
        if cells and variant["adapter"]:
            losses = _losses(table, table.folder.local(table.place, variant["adapter"]))
            yield from tidy({**about, "method": ""}, losses)
        for cell in cells:
            scores = {metric: table.score(cell, metric) for metric in table.metrics}
            texts = _lengths_of_texts([*table.texts(cell).values()])
            yield from tidy({**about, "method": cell.method}, texts | scores)
    references = _lengths_of_texts([row["target"] for row in table.testset(table.cells[0]).values()])
    yield from tidy({"backbone": "", "method": "reference", **dict.fromkeys(columns, NAN)}, references)


def _lengths_of_texts(texts: Sequence[str]) -> dict[str, Any]:
    empty = sum(not text.strip() for text in texts) / len(texts)
    return {"sentences": len(texts), "empty_rate": empty, "mean_characters": sum(map(len, texts)) / len(texts)}


def _losses(table: Table, adapter: str | None) -> dict[str, float]:
    if adapter is None:
        raise NotAtHandError("an adapter that is not among the results")
    folder = table.folder.root / adapter
    size = files.read_json(folder / "adapter.json", files.MOST)["vocabulary"]
    steps = [*csv.DictReader(files.read_lines(folder / "losses.csv", files.MOST))]
    values: dict[str, float] = {"vocabulary": size, "uniform_cross_entropy": math.log(size)}
    for name in ("cross_entropy", "loss"):
        curve = [float(row[name]) for row in steps]
        lowest = curve.index(min(curve))
        values |= {f"{name}_final": curve[-1], f"{name}_minimum": curve[lowest]}
        values |= {f"{name}_last_mean": mean(curve[-10:]), f"{name}_last_std": deviation(curve[-10:])}
        values[f"{name}_minimum_step"] = int(float(steps[lowest]["step"]))
    return values | {"cross_entropy_over_uniform": values["cross_entropy_final"] / math.log(size)}
