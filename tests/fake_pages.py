"""Made-up results of many systems on one test set, as the page of its sentences reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fake_results import METRICS
from fake_sets import put

from entropy_valley import files
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import Params

METHODS = ("oracle", "ratio", "ratio_eos", "ev", "ev_line", "ev_line_4", "adaptive_ev", "cal")
Output = tuple[str, float]  # a translation and its score


def write(root: Path, pairs: Sequence[tuple[str, str]], outputs: Mapping[str, Sequence[Output]]) -> Params:
    """As :func:`params`, parsed."""
    return Params(params(root, pairs, outputs))


def params(root: Path, pairs: Sequence[tuple[str, str]], outputs: Mapping[str, Sequence[Output]]) -> dict[str, Any]:
    """Sets of these systems, by method, and of a beam search whose outputs are the references; the page's params."""
    names = [f"test-{number}" for number in range(len(pairs))]
    rows = [{"id": name, "source": x, "target": y} for name, (x, y) in zip(names, pairs, strict=True)]
    files.write_jsonl(root / "test.jsonl", rows)
    cells = [_cell(root, names, method, found) for method, found in outputs.items()]
    cells.append(_cell(root, names, "beam4", [(y, 0.5) for _, y in pairs], backbone="llama3-tiny", steps=0))
    return {
        "cells": cells,
        "metrics": [dataclasses.asdict(metric) for metric in METRICS],
        "labels": {"directions": {"en-zh": "En→Zh"}, "backbones": {"llada-tiny": "LLaDA-tiny"}},
        **{"sentences": str(root / "test.jsonl"), "main": "llada-tiny"},
    }


def _cell(
    root: Path, names: Sequence[str], method: str, found: Sequence[Output], backbone: str = "llada-tiny", steps: int = 8
) -> dict[str, Any]:
    place = {"backbone": backbone, "direction": "en-zh", "testset": "test", "seed": 1, "method": method}
    cell = {**place, "order": "med" * bool(steps), "steps": steps, "path": str(root / backbone / "seed1" / "matrix")}
    grid = {"candidates": [6, 5, 8], "scores": [0.25, 0.5, 0.75]} if method.startswith("ev") else {}
    chosen = {"canvas": {"length": 6, "candidates": [6], "scores": [], **grid}} if steps else {}
    given = list(zip(names, found, strict=True))
    rows = ({"id": name, "hypothesis": text, "length": 6, "tokens": [1], **chosen} for name, (text, _) in given)
    put(cell, TRANSLATIONS, list(rows))
    put(cell, SCORES, [{"id": name, "comet22": x, "chrf": 100 * x} for name, (_, x) in given])
    return cell
