"""The rows of each set: their sentences, texts, canvases and costs, and what the header says of each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from entropy_valley.decoding.variable_length import VARIABLE_LENGTH
from entropy_valley.errors import listed
from entropy_valley.lengths import Choice, Sentence, make_method
from entropy_valley.lengths.baselines import reassign
from entropy_valley.results import TRANSLATIONS, System
from entropy_valley.texts import counted
from entropy_valley.verification.folder import HEADER, Folder, Report, Row, Set, Unchecked, cells_of

TOTALS = ("calls", "slots", "passes", "run_tokens", "head_rows")
ONE_PASS_A_STEP = ("med", "left_to_right", "random")  # orders that look at the canvas alone
ON_GRID = ("ev", "neighbours", "lr_style", "eos_probe")  # they probe a grid of ratios
UNPROBED = ("oracle", "oracle_on_grid", "ratio")  # they need the numbers of tokens alone
NO_TOKENIZER = Unchecked("the backbone's tokenizer is not at hand")
NO_TESTSET = Unchecked("the test set is not among the results")
Tokens = Mapping[str, tuple[int, int]]


def check(folder: Folder, report: Report) -> None:
    """Check every row of every set, and what its header says of each cell."""
    for one in folder.sets:
        file = f"{one.home}/{TRANSLATIONS}"
        with report.reading("rows", folder.root / file, file):
            entries, cells = cells_of(folder.records[f"{one.home}/{HEADER}"]), folder.rows(file)
            report.compare("rows", file, "cells", sorted(cells), sorted(entries))
            for system, rows in cells.items():
                with report.reading("rows", folder.root / file, file):
                    _check_cell(folder, report, one, system, rows, entries.get(system, {}))


def _check_cell(
    folder: Folder, report: Report, one: Set, system: System, rows: Sequence[Row], entry: Mapping[str, Any]
) -> None:
    file, header = f"{one.home}/{TRANSLATIONS}", f"{one.home}/{HEADER}"
    check_ids(folder, report, one, system, rows, file)
    _check_texts(folder, report, one, rows, file)
    tokens = folder.tokens(one.direction, one.backbone, system.testset)
    if system.order:  # an autoregressive system has no canvas
        _check_canvases(folder, report, one, system, rows, tokens)
    totals = _totals(folder.records[header]["params"], system, rows, tokens)
    for name in sorted(entry.keys() & totals.keys()):
        report.compare("totals of cells", header, f"{name} of {system.label}", entry[name], totals[name])


def check_ids(folder: Folder, report: Report, one: Set, system: System, rows: Sequence[Row], file: str) -> None:
    """A row for each sentence of the test set, in its order."""
    ids, stored = [*folder.testset(one.direction, system.testset)], [row.values["id"] for row in rows]
    lacking, further = sorted({*ids} - {*stored}), sorted({*map(str, stored)} - {*ids})
    if not ids:
        report.compare("rows", file, "sentences", stored, NO_TESTSET)
    elif lacking:
        report.differ("rows", file, f"{system.label} lacks {counted(len(lacking), 'sentence')}: {listed(lacking, 5)}")
    elif further:
        report.differ("rows", file, f"{system.label} has what is not in its test set: {listed(further, 5)}")
    elif stored != ids:
        report.differ("rows", file, f"{system.label} has sentences twice, or not in the order of its test set")
    else:
        report.compare("rows", file, "sentences", stored, ids)


def _check_texts(folder: Folder, report: Report, one: Set, rows: Sequence[Row], file: str) -> None:
    tokenizer = folder.tokenizer(one.backbone)
    for row in rows:
        ids, text = row.values.get("tokens"), NO_TOKENIZER
        if tokenizer is not None and ids is not None:
            text = tokenizer.decode(ids, skip_special_tokens=True).strip()
        report.compare("texts", file, f"line {row.line}, hypothesis", row.values.get("hypothesis"), text)


def check_tokens(folder: Folder, report: Report) -> None:
    """Count the tokens of every test set again."""
    for path in sorted(folder.root.glob("*/*/tokens/*.jsonl")):
        direction, backbone, _, name = path.relative_to(folder.root).parts
        with report.reading("token counts", path, path.relative_to(folder.root)):
            testset = name.removesuffix(".jsonl")
            follows: Tokens | Unchecked = folder.tokens(direction, backbone, testset)
            if folder.tokenizer(backbone) is None or not folder.testset(direction, testset):
                follows = NO_TOKENIZER if folder.tokenizer(backbone) is None else NO_TESTSET
            counted = folder.counted(direction, backbone, testset)
            for sentence, counts in counted.items():
                value = follows if isinstance(follows, Unchecked) else follows.get(sentence)
                report.compare("token counts", path.relative_to(folder.root), f"tokens of {sentence}", counts, value)


# --- Canvases: chosen from the numbers of tokens and from the scores in the row, as the length method does.


def _check_canvases(
    folder: Folder, report: Report, one: Set, system: System, rows: Sequence[Row], tokens: Tokens
) -> None:
    """The candidates from the numbers of tokens, the choice from the candidates' scores, calls and slots from both."""
    file, params = f"{one.home}/{TRANSLATIONS}", folder.records[f"{one.home}/{HEADER}"]["params"]
    settings = params.get("methods", {}).get(system.method)
    if settings is None:
        report.compare("canvases", file, f"method of {system.label}", system.method, "no method that was asked for")
        return
    name, order = settings.get("method", system.method), params["orders"][system.order]["order"]
    reassigned = _reassigned(folder, one, system, settings, tokens) if name == "reassigned" else {}
    for row in rows:
        canvas, sentence = row.values["canvas"], row.values["id"]
        candidates: Any = Unchecked(f"the candidates of {name}: they depend on what is not stored")
        if name in (*ON_GRID, *UNPROBED, "reassigned"):
            candidates = NO_TOKENIZER
            if sentence in tokens:
                candidates = reassigned.get(sentence, []) or _candidates(system.method, settings, *tokens[sentence])
        values = {"canvas.candidates": (canvas["candidates"], candidates)}
        values["canvas.length"] = canvas["length"], _chosen(name, canvas)
        decoded: Any = canvas["length"]
        if order in VARIABLE_LENGTH:
            decoded = Unchecked("a canvas that changes in decoding")
        elif "contenders" in canvas:
            decoded = Unchecked("which of several translations is kept: the others are not stored")
        values["length"] = row.values["length"], decoded
        for key, (stored, follows) in values.items():
            report.compare("canvases", file, f"line {row.line}, {key}", stored, follows)
        _check_costs(report, file, name, order, system.steps, row)


def _candidates(name: str, settings: Mapping[str, Any], source: int, target: int) -> list[int]:
    method, sentence = make_method(name, settings), Sentence(source, target)
    if settings.get("method", name) in UNPROBED:
        return [method.choose(sentence, {}).length]
    return sorted(method.propose(sentence, {}))


def _chosen(name: str, canvas: Mapping[str, Any]) -> int | Unchecked:
    """The candidate of the lowest score; DAEDAL takes its longest, a method without scores its only one."""
    candidates, scores = canvas["candidates"], canvas["scores"]
    if name == "daedal":
        return max(candidates)
    if scores:
        ties = name in ("cal", "length_head") and scores.count(min(scores)) > 1
        if ties:
            return Unchecked(f"a tie of {name}: the first in the order of its search wins")
        return Choice.lowest(dict(zip(candidates, scores, strict=True))).length
    if len(candidates) == 1 and name not in ON_GRID:
        return candidates[0]
    return Unchecked(f"the choice of {name}: it depends on what is not stored")


def _check_costs(report: Report, file: str, name: str, order: str, steps: int, row: Row) -> None:
    """Calls and slots as the paper counts them: a probe a candidate, then T passes over each canvas."""
    canvas, costs = row.values["canvas"], {}
    if name in (*ON_GRID, *UNPROBED, "reassigned"):
        probed = canvas["candidates"] if canvas["scores"] else []
        costs["probes"] = (canvas["calls"], canvas["slots"]), (len(probed), sum(probed))
    if order in ONE_PASS_A_STEP:
        decoded = canvas.get("contenders", [canvas["length"]])
        rescored = decoded if canvas.get("rescoring") and len(decoded) > 1 else []
        calls = canvas["calls"] + steps * len(decoded) + len(rescored)
        slots = canvas["slots"] + steps * sum(decoded) + sum(rescored)
        costs["sentence"] = (row.values["calls"], row.values["slots"]), (calls, slots)
    for what, (stored, follows) in costs.items():
        report.compare("costs", file, f"line {row.line}, calls and slots of the {what}", stored, follows)


def _reassigned(
    folder: Folder, one: Set, system: System, settings: Mapping[str, Any], tokens: Tokens
) -> dict[str, list[int]]:
    """The canvases of a method, its ratios given to other sentences by a seeded shuffle; none without them."""
    origin = system._replace(method=settings.get("of", "ev"))
    for other in folder.sets:
        rows = folder.rows(f"{other.home}/{TRANSLATIONS}").get(origin, []) if other[1:] == one[1:] else []
        if rows and all(row.values["id"] in tokens for row in rows):
            lengths = [row.values["canvas"]["length"] for row in rows]
            sources = [tokens[row.values["id"]][0] for row in rows]
            given = reassign(lengths, sources, settings["seed"], settings.get("within", "all"))
            return {row.values["id"]: [length] for row, length in zip(rows, given, strict=True)}
    return {}


def _totals(params: Mapping[str, Any], system: System, rows: Sequence[Row], tokens: Tokens) -> dict[str, Any]:
    """What a header says of a cell, from its rows: sentences, the sums of costs, canvases that more steps leave as they
    are, and the mean distance of the canvas from the reference's tokens and EOS."""
    values = [row.values for row in rows]
    changing = system.order and params["orders"][system.order]["order"] in VARIABLE_LENGTH
    totals: dict[str, Any] = {name: sum(row.get(name, 0) for row in values) for name in TOTALS}
    totals["sentences"] = len(rows)
    totals["within_steps"] = sum(changing or row["length"] <= system.steps for row in values)
    errors = [abs(row["length"] - tokens[row["id"]][1] - 1) for row in values if row["id"] in tokens]
    totals["length_mae"] = round(sum(errors) / len(errors), 6) if errors else NO_TOKENIZER
    return totals
