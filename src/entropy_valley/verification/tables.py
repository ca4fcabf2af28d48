"""Every cell of the CSV files of tables and figures, from the rows of the sets that their records name.

A table is known by its columns. For each kind a function gives all of its rows again, as mappings; a column that is not
in one of them is not checkable.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from entropy_valley import files
from entropy_valley.results import System
from entropy_valley.verification import numbers, sets
from entropy_valley.verification.folder import REMEDY, Folder, NotAtHandError, Report, Unchecked, text
from entropy_valley.verification.numbers import NAN, closure, deviation, mean, paired

Expected = Mapping[str, Any]
SETTING = ("backbone", "direction", "testset", "order", "steps")
RUN = (*SETTING, "seed")
PLACE = ("direction", "testset")
LENGTHS = ("ratio", "ev", "oracle")
FIXED = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}  # baselines, and the columns of the closure over each
TESTED = ("ci_low", "ci_high", "p_one_sided", "p_two_sided", "wilcoxon_p")
PAIRS = (("ev", "ratio"), ("ev", "ratio_eos"), ("oracle", "ev"), ("oracle", "ratio"), ("oracle", "ratio_eos"))


# --- A table's cells, and what the rows of the sets say of each.


@dataclass(frozen=True)
class Cell:
    """A cell as a table's record names it; ``home`` is its set."""

    backbone: str
    direction: str
    testset: str
    seed: int
    method: str
    order: str
    steps: int
    home: str
    pool: str = ""

    @property
    def system(self) -> System:
        return System(self.testset, self.method, self.order, self.steps)

    def get(self, *keys: str) -> tuple[Any, ...]:
        return tuple(getattr(self, key) for key in keys)


class Table:
    """A table's record: its params and cells, and the numbers of the sets that it names."""

    def __init__(self, folder: Folder, place: str, params: Mapping[str, Any] | None = None) -> None:
        self.folder, self.place = folder, place
        self.params = folder.records[place]["params"] if params is None else params
        self.cells = [self._cell(one) for one in self.params.get("cells", [])]

    def _cell(self, one: Mapping[str, Any]) -> Cell:
        if (home := self.folder.local(self.place, one["path"])) is None:
            raise NotAtHandError("cells that are not among the results")
        return Cell(**{key: value for key, value in one.items() if key != "path"}, home=home)

    @property
    def metrics(self) -> list[str]:
        """All, the main one first."""
        return [one["name"] for one in self.params["metrics"]]

    @property
    def main(self) -> str:
        return self.metrics[0]

    def sign(self, metric: str) -> int:
        better = {one["name"]: one["higher_is_better"] for one in self.params["metrics"]}
        return 1 if better.get(metric, metric != "length_mae") else -1

    def score(self, cell: Cell, metric: str) -> float | Unchecked:
        """The system score, from texts and rows: never what the header says."""
        return sets.scored(self.folder, cell.home).system(cell.system, metric)

    @functools.cache  # noqa: B019
    def sentences(self, cell: Cell) -> dict[str, float]:
        """The main metric of each sentence, by id."""
        return dict(sets.sentences(self.folder, cell.home, cell.system, self.main))

    def aligned(self, cells: Sequence[Cell], like: Cell) -> np.ndarray:
        """The mean over cells of each sentence's score, in the order of ``like``."""
        ids = self.sentences(like)
        return np.mean([[self.sentences(cell)[name] for name in ids] for cell in cells], axis=0)

    def test(self, first: Cell, others: Sequence[Cell]) -> dict[str, float]:
        return paired(self.aligned([first], first), self.aligned(others, first), self.params)

    def rows(self, cell: Cell) -> list[Mapping[str, Any]]:
        return [row.values for row in self.folder.outputs(cell.home).get(cell.system, [])]

    def errors(self, cell: Cell, oracle: Cell) -> dict[str, int]:
        """The distance of each canvas from Oracle's."""
        true = {row["id"]: row["length"] for row in self.rows(oracle)}
        return {row["id"]: abs(row["length"] - true[row["id"]]) for row in self.rows(cell)}

    def costs(self, cell: Cell) -> dict[str, Any]:
        """Per sentence; ``within_steps`` is a share, ``length_mae`` a mean."""
        own = sets.totals(self.folder, cell.home, cell.system)
        keys = ("calls", "slots", "passes", "within_steps", "run_tokens")
        per_sentence = {key: own[key] / own["sentences"] for key in keys}
        return {"sentences": own["sentences"], **per_sentence, "length_mae": own["length_mae"]}

    def testset(self, cell: Cell) -> dict[str, dict[str, Any]]:
        return self.folder.testset(cell.home, cell.testset)

    def tokens(self, cell: Cell) -> dict[str, tuple[int, int]]:
        """|x| and |y| of each sentence of a cell's test set."""
        if not (tokens := self.folder.tokens(cell.home, cell.testset)):
            raise NotAtHandError(sets.NO_TOKENIZER.reason)
        return tokens

    def diagnostics(self, cell: Cell, kind: str) -> Any:
        """What the run's diagnostics say of a test set: readings of canvases, which only the model could give again."""
        place = PurePosixPath(cell.home).parent / "diagnostics.json"
        return files.read_json(self.folder.root / place, files.MOST)[kind][cell.testset]


def grouped(cells: Iterable[Cell], *keys: str) -> dict[tuple[Any, ...], list[Cell]]:
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.get(*keys), []).append(cell)
    return groups


def by_method(cells: Iterable[Cell]) -> dict[str, Cell]:
    return {cell.method: cell for cell in cells}


def named(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(keys, values, strict=True))


def _over_runs(statistic: Callable[..., float], values: Sequence[Any]) -> Any:
    """Over the runs that have a number."""
    unchecked = next((value for value in values if isinstance(value, Unchecked)), None)
    return unchecked or statistic([value for value in values if not math.isnan(value)])


# --- Summaries over runs: main, crossbb, matrix, budgets, readings, hero, and parts of others.


def summary(
    table: Table, cells: Sequence[Cell], metrics: Sequence[str], value: Callable[..., Any]
) -> Iterator[Expected]:
    """Means over runs, sample deviations and gap closures; ``value`` gives a cell's number by a metric."""
    for setting, of_setting in grouped(cells, *SETTING).items():
        methods = {name[0]: {cell.seed: cell for cell in of} for name, of in grouped(of_setting, "method").items()}
        for metric, (name, runs) in itertools.product(metrics, methods.items()):
            row = {**named(SETTING, setting), "method": name, "metric": metric}
            values = {other: {seed: value(cell, metric) for seed, cell in of.items()} for other, of in methods.items()}
            unchecked = [one for of in values.values() for one in of.values() if isinstance(one, Unchecked)]
            if unchecked:
                closures = [f"{prefix}_{part}" for prefix in FIXED.values() for part in ("mean", "std", "runs")]
                yield {**row, **dict.fromkeys(("mean", "std", "delta_ratio", *closures, *COSTS), unchecked[0])}
                continue
            own, sign, ratio = values[name], table.sign(metric), values.get("ratio", {})
            row |= {"mean": mean([*own.values()]), "std": deviation([*own.values()]), "runs": len(own)}
            row |= {"delta_ratio": mean([own[seed] - ratio[seed] for seed in own]) if ratio else NAN}
            for baseline, prefix in FIXED.items():
                others = [values.get(baseline, {}), values.get("oracle", {})]
                triples = [
                    [sign * of[seed] for of in (own, *others)] for seed in own if all(seed in of for of in others)
                ]
                closed = [share for triple in triples if not math.isnan(share := closure(*triple))]
                counted = len(closed) if baseline in values or baseline == "ratio" else NAN
                row |= {f"{prefix}_mean": mean(closed), f"{prefix}_std": deviation(closed), f"{prefix}_runs": counted}
            yield row | _mean_costs(table, runs.values())


COSTS = ("calls", "slots", "passes", "within_steps", "length_mae")


def _mean_costs(table: Table, cells: Iterable[Cell]) -> dict[str, Any]:
    """Costs a sentence, over runs; an autoregressive system has no canvas."""
    costs = [table.costs(cell) for cell in cells if cell.steps]
    return {key: _over_runs(mean, [one[key] for one in costs]) for key in COSTS} if costs else {}


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


def shared_seeds(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of the seeds that all backbones of a direction and test set have; all where they share none."""
    kept = []
    for of_place in grouped(cells, *PLACE).values():
        shared = set.intersection(*({cell.seed for cell in of} for of in grouped(of_place, "backbone").values()))
        kept += [cell for cell in of_place if cell.seed in shared or not shared]
    return kept


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
            over = {key: _over_runs(statistic, [row[key] for row in rows]) for key in rows[0] if key not in single}
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
                gaps[key] = closure(*(sign * runs[one]["comet"] for one in (cell, rival, oracle)))
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


# --- What the outputs keep of the source, and scores by the length ratio of the reference.

ITEMS: dict[str, Callable[[str], list[str]]] = {
    "placeholder": re.compile(r"#[A-Z_]+#").findall,
    "number": re.compile(r"\b\d+(?:[.,]\d+)*%?\b").findall,
    "entity": lambda text: re.findall(r"\b[A-Z]\w+\b", re.sub(r"#[A-Z_]+#", " ", " ".join(text.split()[1:]))),
}


def coverage(table: Table) -> Iterator[Expected]:
    for place, cells in grouped(table.cells, *PLACE).items():
        testset = table.testset(cells[0])
        methods = {name[0]: of for name, of in grouped(cells, "method").items()}
        blocks: list[tuple[str, str, dict[str, list[dict[str, float]]]]] = []
        for item, extract in ITEMS.items():
            if item != "entity" or place[0].split("-")[0] in ("en", "fr"):
                found = {name: items for name, row in testset.items() if (items := extract(row["source"]))}
                kept = {name: [_kept(table, cell, found) for cell in of] for name, of in methods.items()}
                blocks.append(("retention", item, kept))
        if edges := table.params["buckets"].get(place[0]):
            blocks += _buckets(table, methods, edges)
        for block, item, values in blocks:
            yield from _compared(table, {**named(PLACE, place), "block": block, "item": item}, values)


def _kept(table: Table, cell: Cell, found: Mapping[str, Sequence[str]]) -> dict[str, float]:
    texts = {row["id"]: row["hypothesis"] for row in table.rows(cell)}
    return {name: sum(item in texts[name] for item in items) / len(items) for name, items in found.items()}


def _buckets(
    table: Table, methods: Mapping[str, Sequence[Cell]], edges: Sequence[float]
) -> Iterator[tuple[str, str, Any]]:
    cell = next(iter(methods.values()))[0]
    tokens, eos = table.tokens(cell), int(table.params["eos"])
    inner = [f"{low:g}<=r<{high:g}" for low, high in itertools.pairwise(edges)]
    for number, name in enumerate([f"r<{edges[0]:g}", *inner, f"r>={edges[-1]:g}"]):
        ids = [one for one, (x, y) in tokens.items() if sum((y + eos) / max(1, x) >= edge for edge in edges) == number]
        scores = {method: [table.sentences(one) for one in cells] for method, cells in methods.items()}
        yield (
            "bucket",
            name,
            {method: [{one: run[one] for one in ids} for run in runs] for method, runs in scores.items()},
        )


def _compared(table: Table, about: Expected, values: Mapping[str, Any]) -> Iterator[Expected]:
    """Means over runs by sentence, then over sentences; and EV's lead over each fixed ratio."""
    how = {"resamples": table.params["resamples"], "bootstrap_seed": table.params["seed"]}
    means = {method: {name: mean([run[name] for run in runs]) for name in runs[0]} for method, runs in values.items()}
    for method, scores in means.items():
        row = {**about, **how, "method": method, "sentences": len(scores), "runs": len(values[method])}
        row |= {"mean": mean([*scores.values()]), **dict.fromkeys(("delta", *TESTED[:-1]), NAN)}
        if method in FIXED and scores:
            test = paired([means["ev"][name] for name in scores], [*scores.values()], table.params)
            row |= {key: test[key] for key in ("delta", *TESTED[:-1])}
        yield row


def faithfulness(table: Table) -> Iterator[Expected]:
    """Of :func:`coverage` the placeholders, the numbers, and the first and the last group."""
    rows = [*coverage(table)]
    for place in dict.fromkeys(row["direction"] for row in rows):
        groups = [row["item"] for row in rows if row["direction"] == place and row["block"] == "bucket"]
        ends = {groups[0], groups[-1]} if groups else set()
        for row in rows:
            if row["direction"] == place and row["item"] in {"placeholder", "number"} | ends:
                yield row


def failure_buckets(table: Table) -> Iterator[Expected]:
    means: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run, cells in grouped(table.cells, *PLACE, "seed").items():
        methods = by_method(cells)
        ev = table.sentences(methods["ev"])
        tokens = table.tokens(methods["ev"])
        causes = {
            row["id"]: _cause(row["canvas"]["candidates"], *tokens[row["id"]]) for row in table.rows(methods["ev"])
        }
        for rival in (name for name in FIXED if name in methods):
            other, sign = table.sentences(methods[rival]), table.sign(table.main)
            lost = {name: score - other[name] for name, score in ev.items() if sign * (score - other[name]) < 0}
            for cause in ("very_short", "overshoot", "under_compression", "within_grid", "all"):
                of_cause = [delta for name, delta in lost.items() if cause in ("all", causes[name])]
                share = len(of_cause) / len(lost) if lost else NAN
                row = {"sentences": len(ev), "losses": len(of_cause), "share": share, "delta": mean(of_cause)}
                means.setdefault((*run[:2], rival, cause), []).append(row)
                yield {
                    **named((*PLACE, "seed"), run),
                    "statistic": "run",
                    "runs": 1,
                    "rival": rival,
                    "cause": cause,
                    **row,
                }
    for about, rows in means.items():
        over = {key: _over_runs(mean, [row[key] for row in rows]) for key in rows[0]}
        head = {**named((*PLACE, "rival", "cause"), about), "seed": NAN, "statistic": "mean", "runs": len(rows)}
        yield {**head, **over}


def _cause(candidates: Sequence[int], source: int, target: int) -> str:
    if source <= 3:
        return "very_short"
    if target + 1 < min(candidates):
        return "overshoot"
    return "under_compression" if target + 1 > max(candidates) else "within_grid"


# --- Lengths beside scores: the table and the points of its figure.


def dissociation(table: Table) -> Iterator[Expected]:
    yield from _lengths_and_scores(table)
    for run, cells in grouped(table.cells, *RUN).items():
        methods = by_method(cells)
        for baseline in (name for name in FIXED if name in methods):
            named_cells = [methods[name] for name in ("ev", baseline, "oracle")]
            scores = [table.sign(table.main) * table.aligned([cell], methods["oracle"]) for cell in named_cells]
            ids, errors = [*table.sentences(methods["oracle"])], _errors(table, methods)
            lengths = [[-errors[cell.method][name] for name in ids] for cell in named_cells]
            values = np.column_stack([*scores, *lengths]).astype(float)
            yield {**named(RUN, run), "method": "", "metric": "", "baseline": baseline, **_claim(table, values)}


def _errors(table: Table, methods: Mapping[str, Cell]) -> dict[str, dict[str, int]]:
    return {name: table.errors(cell, methods["oracle"]) for name, cell in methods.items()}


def _claim(table: Table, values: np.ndarray) -> dict[str, float]:
    """How much more of the gap in score than of that in length EV closes, with its limits."""
    means = values.mean(axis=0)
    score, length = closure(*means[:3]), closure(*means[3:])
    low = high = score - length
    if not math.isnan(low):
        drawn = numbers.resampled_means(values, table.params)
        low, high = np.nanquantile([closure(*row[:3]) - closure(*row[3:]) for row in drawn], [0.025, 0.975])
    claim = {"score_closure": score, "length_closure": length, "delta": score - length}
    return {"ev_length_mae": -float(means[3]), **claim, "ci_low": float(low), "ci_high": float(high)}


def _lengths_and_scores(table: Table) -> Iterator[Expected]:
    oracles = {cell.get(*RUN): cell for cell in table.cells if cell.method == "oracle"}

    def value(cell: Cell, metric: str) -> float | Unchecked:
        if metric == table.main:
            return table.score(cell, metric)
        return mean([*table.errors(cell, oracles[cell.get(*RUN)]).values()])

    for row in summary(table, table.cells, [table.main, "length_mae"], value):
        yield {**row, "baseline": "", "id": ""}


def points(table: Table) -> Iterator[Expected]:
    """The sentences of the first seed of each place, then the means."""
    for cells in grouped(table.cells, "backbone", *PLACE).values():
        methods = by_method(cell for cell in cells if cell.seed == cells[0].seed)
        for name in LENGTHS:
            scores = table.sentences(methods[name])
            for sentence, error in _errors(table, methods)[name].items():
                about = named(("backbone", *PLACE), cells[0].get("backbone", *PLACE)) | {"method": name, "metric": ""}
                yield {**about, "id": sentence, "error": error, "score": scores[sentence]}
    yield from (row for row in _lengths_and_scores(table) if row["method"] in LENGTHS)


# --- Three sentences of a run.


def cases(table: Table) -> Iterator[Expected]:
    cells = by_method(table.cells)
    testset = table.testset(cells["ev"])
    of_method = {name: {row["id"]: row for row in table.rows(cells[name])} for name in LENGTHS}
    kind = "placeholder" if any(ITEMS["placeholder"](row["source"]) for row in testset.values()) else "number"
    listed = []
    for name, row in testset.items():
        one: dict[str, Any] = {"id": name, "source": row["source"], "reference": row["target"], "items": kind}
        found = ITEMS[kind](row["source"])
        for method in LENGTHS:
            output = of_method[method][name]
            one |= {f"{method}_slots": output["canvas"]["length"], f"{method}_output": output["hypothesis"]}
            one[f"{method}_score"] = table.sentences(cells[method])[name]
            one[f"{method}_kept"] = sum(item in output["hypothesis"] for item in found) / len(found) if found else NAN
        canvas = of_method["ev"][name]["canvas"]
        one |= {"candidates": _joined(canvas["candidates"]), "entropies": _joined(canvas["scores"])}
        one["delta"] = one["ev_score"] - one["ratio_score"]
        one["beyond"] = not min(canvas["candidates"]) <= one["oracle_slots"] <= max(canvas["candidates"])
        one["lead"], one["kept"] = table.sign(table.main) * one["delta"], one["ev_kept"] - one["ratio_kept"]
        listed.append(one)
    about = named(("backbone", *PLACE, "seed"), table.cells[0].get("backbone", *PLACE, "seed"))
    taken: list[Expected] = []
    for case, counts, size in CASES:
        fitting = [one for one in listed if counts(one) and one not in taken]
        if fitting:
            taken.append(max(fitting, key=size))
            yield {**about, "case": case, **taken[-1]}


CASES: Sequence[tuple[str, Callable[[Expected], bool], Callable[[Expected], Any]]] = (
    ("largest win", lambda one: one["lead"] > 0, lambda one: one["lead"]),
    ("largest win in what is kept", lambda one: one["kept"] > 0, lambda one: (one["kept"], one["lead"])),
    ("largest loss beyond the grid", lambda one: one["beyond"] and one["lead"] < 0, lambda one: -one["lead"]),
)


def _joined(values: Iterable[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


# --- EV's controls, and curves of all-mask canvases.


def checks(table: Table) -> Iterator[Expected]:
    alternatives, own = ("ev_sum", "ev_normalised", "ev_median"), [cell for cell in table.cells if cell.method == "ev"]
    for row in curves(table):
        if row["axis"] == "ratios":
            yield from _sweep_rows(table, row)
    for place, cells in grouped(own, *PLACE).items():
        for number, (ratio, counts) in enumerate(_taken(table, cells).items(), 1):
            shares = [count / len(table.rows(cell)) for count, cell in zip(counts, cells, strict=True)]
            values = {"ratio": ratio, "count": mean(counts), "share": mean(shares)}
            yield from _tidy(place, NAN, "chosen", number, values)
    scored = [cell for cell in table.cells if cell.method in ("ev", *alternatives)]
    for row in summary(table, scored, [table.main], table.score):
        values = {key: row[key] for key in ("mean", "std", "runs")}
        yield from _tidy((row["direction"], row["testset"]), NAN, "score", row["method"], values)
    for run, cells in grouped(table.cells, *RUN).items():
        groups: dict[str, list[Cell]] = {}
        for cell in cells:
            match = re.fullmatch(r"(ev_reassigned(?:_deciles)?)_\d+", cell.method)
            if match or cell.method in alternatives:
                groups.setdefault(match[1] if match else cell.method, []).append(cell)
        for name, others in groups.items():
            test = {**table.test(by_method(cells)["ev"], others), "systems": len(others)}
            yield from _tidy((run[1], run[2]), run[-1], "test", name, test)


def _tidy(place: Sequence[Any], seed: float, check: str, item: object, values: Expected) -> Iterator[Expected]:
    for metric, value in values.items():
        yield {**named(PLACE, place), "seed": seed, "check": check, "item": str(item), "metric": metric, "value": value}


def _sweep_rows(table: Table, row: Expected) -> Iterator[Expected]:
    """The ends of the sweep, and where the entropy is lowest."""
    line = [one for one in curves(table) if one["axis"] == "ratios" and all(one[key] == row[key] for key in PLACE)]
    lowest = min(line, key=lambda one: one["mean"])
    for item, point in (("first", line[0]), ("lowest", lowest), ("last", line[-1])):
        if point["at"] == row["at"]:
            values = {"ratio": point["at"], "entropy": point["mean"], "sentences": point["sentences"]}
            yield from _tidy([row[key] for key in PLACE], NAN, "sweep", item, values)


def _taken(table: Table, cells: Sequence[Cell]) -> dict[float, list[int]]:
    """By ratio of EV's grid the sentences of each run that take it; of ratios with one canvas the smallest."""
    taken = {ratio: [0] * len(cells) for ratio in sorted(table.params["grids"][cells[0].direction])}
    for number, cell in enumerate(cells):
        tokens = table.tokens(cell)
        for row in table.rows(cell):
            source, length = tokens[row["id"]][0], row["canvas"]["length"]
            products = ({sets.candidate(ratio, source, {"exact": exact}) for exact in (True, False)} for ratio in taken)
            fitting = [ratio for ratio, lengths in zip(taken, products, strict=True) if length in lengths]
            if not fitting:
                raise NotAtHandError(f"a canvas of {length} slots is none of EV's grid")
            taken[fitting[0]][number] += 1
    return taken


def curves(table: Table) -> Iterator[Expected]:
    """Means over runs of the curves that the diagnostics of each run have."""
    lines: dict[tuple[Any, ...], list[Expected]] = {}
    for cells in grouped(table.cells, "backbone", *PLACE, "seed").values():
        for axis in ("offsets", "offsets_complete", "ratios"):
            for point in table.diagnostics(cells[0], "valley")[axis]:
                lines.setdefault((*cells[0].get("backbone", *PLACE), axis, point["at"]), []).append(point)
    for about, of_runs in lines.items():
        centre = mean([point["mean"] for point in of_runs])
        error = of_runs[0]["standard_error"]
        reach = (
            deviation([point["mean"] for point in of_runs])
            if len(of_runs) > 1
            else 1.96 * (NAN if error is None else error)
        )
        row = {**named(("backbone", *PLACE, "axis", "at"), about), "mean": centre, "runs": len(of_runs)}
        row |= {"low": centre - reach, "high": centre + reach}
        row["spread"] = "std over runs" if len(of_runs) > 1 else "95% of the mean over sentences"
        for key in ("sentences", "mean_length", "lowest"):
            row[key] = mean([point[key] for point in of_runs if key in point])
        yield row


# --- Settings and counts beside results.


def cost(table: Table) -> Iterator[Expected]:
    measured, papers = Unchecked("a measured time"), Unchecked("a number of the paper")
    for budget, (place, cells) in itertools.product((32, 64, 128), grouped(table.cells, *SETTING).items()):
        calls = mean([table.costs(cell)["calls"] for cell in cells])
        about = {"direction": place[1], "item": f"T = {budget}", "paper": papers}
        yield {"part": "probe_share", **about, "here": (calls - place[-1]) / budget}
        yield {"part": "probe_cap", **about, "here": table.params["candidates"][place[1]] / budget}
    for row in _stored(table):
        if row["part"] not in ("probe_share", "probe_cap"):
            yield {**row, "here": measured, "paper": papers}


def corpus(table: Table) -> Iterator[Expected]:
    """Pairs that were drawn, and their length ratios; which were dropped only the data set could tell."""
    for one in table.params["directions"]:
        direction, backbones = one["direction"], {row["backbone"] for row in _stored(table)} - {""}
        pairs = {part: _pairs(table, f"corpus/{direction}/{part}.jsonl") for part in ("train", "dev")}
        dropped = Unchecked("pairs of a data set that is not among the results")
        for row in _stored(table):
            if row["direction"] == direction and not row["backbone"]:
                yield {**row, "value": len(pairs[row["metric"]]) if row["metric"] in pairs else dropped}
        for backbone in backbones:
            for metric, value in _length_ratios(table, backbone, pairs["train"]).items():
                yield {"direction": direction, "backbone": backbone, "metric": f"length_ratio_{metric}", "value": value}


def _pairs(table: Table, file: str) -> list[dict[str, Any]]:
    return files.read_jsonl(files.regular(table.folder.root / file, 2**31), ("source", "target"))


def _length_ratios(table: Table, backbone: str, pairs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    sides = [table.folder.count(backbone, [pair[side] for pair in pairs]) for side in ("source", "target")]
    percentiles = (10, 30, 50, 70, 90)
    if None in sides:
        return dict.fromkeys(
            ("median", "mean", "pairs", *(f"p{percent}" for percent in percentiles)), sets.NO_TOKENIZER
        )
    ratios = [target / source for source, target in zip(*sides, strict=True) if source]
    values = named([f"p{percent}" for percent in percentiles], np.percentile(ratios, percentiles).tolist())
    return {"median": float(np.median(ratios)), "mean": math.fsum(ratios) / len(ratios), "pairs": len(ratios), **values}


def dream_instruct(table: Table) -> Iterator[Expected]:
    variants = table.params["variants"]

    def rows(backbone: str, method: str, values: Expected) -> Iterator[Expected]:
        about = {key: variants[backbone][key] if backbone else NAN for key in DESCRIBED}
        for metric, value in values.items():
            yield {"backbone": backbone, "method": method, "metric": metric, "value": value, **about}

    for name, variant in variants.items():
        if any(cell.backbone == name for cell in table.cells) and variant["adapter"]:
            yield from rows(name, "", _losses(table, table.folder.local(table.place, variant["adapter"])))
    for cell in table.cells:
        texts = _described([row["hypothesis"] for row in table.rows(cell)])
        yield from rows(cell.backbone, cell.method, texts | {one: table.score(cell, one) for one in table.metrics})
    references = [row["target"] for row in table.testset(table.cells[0]).values()]
    yield from rows("", "reference", _described(references))


DESCRIBED = ("label", "prompt", "training", "shifted", "natural_shift")


def _described(texts: Sequence[str]) -> dict[str, Any]:
    empty = sum(not text.strip() for text in texts) / len(texts)
    return {"sentences": len(texts), "empty_rate": empty, "mean_characters": sum(map(len, texts)) / len(texts)}


def _losses(table: Table, adapter: str | None) -> dict[str, float]:
    if adapter is None:
        raise NotAtHandError("an adapter that is not among the results")
    folder = table.folder.root / adapter
    size = files.read_json(folder / "adapter.json", files.MOST)["vocabulary"]
    losses = [*csv.DictReader(files.read_lines(folder / "losses.csv", files.MOST))]
    values: dict[str, float] = {"vocabulary": size, "uniform_cross_entropy": math.log(size)}
    for name in ("cross_entropy", "loss"):
        curve = [float(row[name]) for row in losses]
        lowest = curve.index(min(curve))
        values |= {f"{name}_final": curve[-1], f"{name}_last_mean": mean(curve[-10:]), f"{name}_minimum": curve[lowest]}
        values |= {
            f"{name}_last_std": deviation(curve[-10:]),
            f"{name}_minimum_step": int(float(losses[lowest]["step"])),
        }
    return values | {"cross_entropy_over_uniform": values["cross_entropy_final"] / math.log(size)}


# --- Which table is which, and the comparison.


@dataclass(frozen=True)
class Kind:
    """Tables that have these columns: their rows again, and the columns that name a row."""

    columns: frozenset[str]
    rows: Callable[[Table], Iterator[Expected]]
    keys: Sequence[str]


def _kind(columns: str, rows: Callable[[Table], Iterator[Expected]], keys: str) -> Kind:
    return Kind(frozenset(columns.split()), rows, keys.split())


IN_SUMMARY = "backbone direction testset order steps method metric"
KINDS = (  # the first that fits
    _kind("panel delta_ratio", hero, f"panel {IN_SUMMARY} seed"),
    _kind("statistic cost lead", study, "backbone direction testset pool method order steps statistic seed"),
    _kind("first second wilcoxon_p", significance, "backbone direction testset order steps seed first second"),
    _kind("against ci_low", ar_reference, f"{IN_SUMMARY} against seed"),
    _kind("ev_length_mae score_closure", dissociation, f"{IN_SUMMARY} seed baseline"),
    _kind("error score id", points, "backbone direction testset method metric id"),
    _kind("delta_ratio gap_closure_mean", main_table, IN_SUMMARY),
    _kind("case source entropies", cases, "case"),
    _kind("rival cause share", failure_buckets, "direction testset seed statistic rival cause"),
    _kind("block item bootstrap_seed", coverage, "direction testset block item method"),
    _kind("check item metric value", checks, "direction testset seed check item metric"),
    _kind("axis at low high", curves, "backbone direction testset axis at"),
    _kind("natural_shift value", dream_instruct, "backbone method metric"),
    _kind("part item here paper", cost, "part direction item"),
    _kind("method order metric value steps", orders, "backbone direction testset steps seed method order metric"),
    _kind("direction backbone metric value", corpus, "direction backbone metric"),
)
SETTINGS = {
    "hyperparams": "settings of the training, not results",
    "prompts": "settings of the decoding, not results",
    "method": "a drawing with made-up numbers",
    "paper_comparison": "the paper's numbers beside cells of other tables",
}
UNKNOWN = "a table that verify does not know"


def check(folder: Folder, report: Report) -> None:
    """Compare every cell of every CSV file in tables/ and figures/."""
    for path in sorted(path for part in ("tables", "figures") for path in (folder.root / part).glob("*.csv")):
        file, place = path.relative_to(folder.root).as_posix(), path.relative_to(folder.root).with_suffix(".made.json")
        header, rows = _read(folder, file)
        if place.as_posix() not in folder.records:
            report.unchecked[file]["a table without a record"] += len(header) * len(rows)
            continue
        with files.readable(folder.root / place, "record of a table with all that it names", REMEDY):
            _check_table(report, folder, place.as_posix(), file, header, rows)


def _read(folder: Folder, file: str) -> tuple[list[str], list[dict[str, str]]]:
    with files.readable(folder.root / file, "CSV file", REMEDY):
        content = files.regular(folder.root / file, files.MOST).read_text("utf-8")
        header, *rows = [*csv.reader(io.StringIO(content, newline=""))]
        return header, [dict(zip(header, row, strict=True)) for row in rows]


def _stored(table: Table) -> list[dict[str, str]]:
    """The rows of a table's own file, for what cannot be computed again: their keys alone are used."""
    return _read(table.folder, PurePosixPath(table.place.removesuffix(".made.json")).as_posix() + ".csv")[1]


def _check_table(
    report: Report, folder: Folder, place: str, file: str, header: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> None:
    kind = next((kind for kind in KINDS if kind.columns <= {*header}), None)
    name, again = PurePosixPath(file).stem, {}
    reason = SETTINGS.get(name) or (None if kind else UNKNOWN)
    if reason is None and kind is not None:
        keys = [key for key in kind.keys if key in header]
        try:
            table = Table(folder, place)
            make = faithfulness if name == "faithfulness_summary" else kind.rows
            again = {_key(row, keys): row for row in make(table) if _belongs(file, table, row)}
        except NotAtHandError as error:
            reason = str(error)
    if reason is not None:
        report.unchecked[file][reason] += len(header) * len(rows)
        return
    columns = {column for row in again.values() for column in row}
    for line, row in enumerate(rows, 2):
        expected = again.pop(key := _key(row, keys), None)
        if expected is None:
            report.compare(file, file, f"row {line} ({' '.join(key)})", "a row", "no such row, or not twice")
            continue
        for column in header:
            none = NAN if column in columns else Unchecked(f"a column that verify does not know: {column}")
            value = expected.get(column, none)  # rows of one kind are empty in the columns of another
            report.compare(file, file, f"row {line} ({' '.join(filter(None, key))}), {column}", row[column], value)
    for key in again:
        report.compare(file, file, f"row of {' '.join(filter(None, key))}", None, "a row")


def _belongs(file: str, table: Table, row: Expected) -> bool:
    """Some files have only a part of the rows of their kind; a figure of a summary only the main metric."""
    if file.startswith("figures/") and "panel" not in row and "id" not in row and "delta_ratio" in row:
        return row["metric"] == table.main and (file != "figures/crossbb.csv" or row["method"] == "ev")
    return {
        "tables/crossbb_bleu.csv": lambda: row["metric"] == "bleu",
        "figures/selector_checks.csv": lambda: row["axis"] == "ratios",
        "figures/entropy_valley.csv": lambda: row["axis"] != "ratios",
    }.get(file, lambda: True)()


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(text(row.get(key)) for key in keys)
