"""Tables of sentences: what outputs keep, where EV loses, lengths beside scores, examples, checks, curves."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from entropy_valley.data.categories import CATEGORIES, categories_of
from entropy_valley.verification import numbers, sets
from entropy_valley.verification.cells import (
    FIXED,
    LENGTHS,
    PLACE,
    RUN,
    TESTED,
    Cell,
    Expected,
    Table,
    by_method,
    grouped,
    named,
    over_runs,
    summary,
)
from entropy_valley.verification.folder import NotAtHandError, Unchecked
from entropy_valley.verification.numbers import NAN, closure, deviation, mean, paired

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
        over = {key: over_runs(mean, [row[key] for row in rows]) for key in rows[0]}
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


# --- Two reveal orders by what the source contains.


def categories(table: Table) -> Iterator[Expected]:
    keys, main = ("backbone", *PLACE, "steps", "seed"), table.params["main"]
    (other,) = {cell.order for cell in table.cells} - {main}
    for run, cells in grouped(table.cells, *keys).items():
        orders = {cell.order: cell for cell in cells if cell.method == "oracle"}
        of_sentence = {
            name: categories_of((row["source"], row["target"]), run[1], table.params["challenge"])
            for name, row in table.testset(orders[main]).items()
        }
        for category in (*CATEGORIES, "overall"):
            ids = [name for name, listed in of_sentence.items() if category in (*listed, "overall")]
            for metric, value in _orders_compared(table, orders[other], orders[main], ids, category).items():
                yield {**named(keys, run), "category": category, "metric": metric, "value": value}


def _orders_compared(table: Table, other: Cell, main: Cell, ids: Sequence[str], category: str) -> dict[str, Any]:
    if not ids:
        return {"sentences": 0}
    scores = [[table.sentences(cell)[name] for name in ids] for cell in (other, main)]
    test = paired(*scores, table.params)
    values = {"sentences": len(ids), "other": mean(scores[0]), "main": mean(scores[1])}
    values |= {key: test[key] for key in ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")}
    if category == "overall":
        concentrations = {row["id"]: row["concentration"] for row in table.diagnostics(main, "sig")}
        leads = [first - second for first, second in zip(*scores, strict=True)]
        values |= numbers.spearman([concentrations[name] for name in ids], leads)
    return values


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
