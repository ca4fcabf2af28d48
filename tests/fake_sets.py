"""Sets of cells as jobs leave them: a row for each sentence, and a header beside the rows.

A cell is a ScoredCell, or what the params of a rule have of it: its coordinates, and the folder of its set as ``path``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from entropy_valley.stats.cells import ScoredCell

from entropy_valley import files, results
from entropy_valley.results import SCORES, TRANSLATIONS, System, header_path, system_of, tidy

Row = Mapping[str, Any]
Cell = ScoredCell | Mapping[str, Any]
METRIC = "comet22"  # whose mean over rows is the system's
RULES = {TRANSLATIONS: "translate", SCORES: "score"}


def name(cell: Cell) -> str:
    """Its name in the whole matrix."""
    return _cell(cell).name


def rows(cell: Cell, file: str) -> list[dict[str, Any]]:
    """The rows that a file has of a cell."""
    return _read(Path(_cell(cell).path, file))[system_of(_cell(cell))][0]


def put(cell: Cell, file: str, rows: Sequence[Row] | None = None, **entry: Any) -> None:
    """Write rows of a cell in the place of its own, and keys of its entry in the header; None removes a key. With rows
    of scores, the score of the system is their mean."""
    cell = _cell(cell)
    path, system = Path(cell.path, file), system_of(cell)
    systems = _read(path) if path.is_file() else {}
    before, known = systems.get(system, ([], {}))
    if file == SCORES and rows and all(METRIC in row for row in rows):
        entry = {METRIC: float(np.mean([row[METRIC] for row in rows])), **entry}
    changed = {key: value for key, value in (known | entry).items() if value is not None and key not in System._fields}
    systems[system] = (before if rows is None else list(rows), changed)
    with results.made(RULES[file], _params(cell, file, list(systems)), [], [path]) as record:
        files.write_jsonl(path, tidy({system: rows for system, (rows, _) in systems.items()}))
        record.facts["cells"] = [{**system._asdict(), **one} for system, (_, one) in systems.items()]


def copied(cell: Mapping[str, Any], **other: Any) -> dict[str, Any]:
    """Give another cell of the same set the same rows and numbers; the other cell."""
    new, known = {**cell, **other}, _cell(cell)
    put(new, SCORES, known.segments(), **known.scores())
    put(new, TRANSLATIONS, known.translations(), **known.decoding())
    return new


def diagnose(cell: Cell, kind: str, content: Any) -> None:
    """Write what the diagnostics of a cell's run say of its test set."""
    path, testset = _cell(cell).diagnostics_file, _cell(cell).testset
    known = files.read_json(path) if path.is_file() else {}
    files.write_json(path, known | {kind: {**known.get(kind, {}), testset: content}})


def change_params(path: str | Path, **settings: Any) -> None:
    """Overwrite params in the record of a file."""
    place = results.record_path(path)
    record = results.read_record(place)
    dataclasses.replace(record, params=record.params | settings).write(place)


def _cell(cell: Cell) -> ScoredCell:
    return cell if isinstance(cell, ScoredCell) else ScoredCell(**cell)


def _read(path: Path) -> dict[System, tuple[list[dict[str, Any]], dict[str, Any]]]:
    """The rows and the entry of each cell."""
    found: dict[System, tuple[list[dict[str, Any]], dict[str, Any]]] = {}
    for entry in files.read_json(header_path(path))["facts"]["cells"]:
        found[System(*(entry.pop(key) for key in System._fields))] = ([], entry)
    for row in files.read_jsonl(path) if path.stat().st_size else []:
        found[System(*(row.pop(key) for key in System._fields))][0].append(row)
    return found


def _params(cell: ScoredCell, file: str, systems: Sequence[System]) -> dict[str, Any]:
    """Params as those of the rule."""
    params = {"direction": cell.direction, "revision": 1, "made_from": {"a file": files.digest(cell.path)}}
    if file == TRANSLATIONS:
        params |= {"backbone": cell.backbone, "precision": "float32", "cells": list(map(list, systems))}
        if cell.order:
            params |= {
                "schedule": "llada",
                "methods": {system.method: {} for system in systems},
                "orders": {system.order: {"order": system.order, "order_settings": {}} for system in systems},
            }
    return params
