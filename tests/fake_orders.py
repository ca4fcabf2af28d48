"""Made-up results of reveal orders under Oracle's lengths, on sentences with and without categories."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fake_results import METRICS
from fake_sets import diagnose, name, put

from entropy_valley import files
from entropy_valley.results import SCORES, TRANSLATIONS

ORDERS = {
    "med": {"order": "med", "settings": {}, "source_guided": False},
    "sig_first": {"order": "sig_first", "settings": {}, "source_guided": True},
    "hybrid_25": {"order": "hybrid", "settings": {"p": 0.25}, "source_guided": True},
    "random": {"order": "random", "settings": {"seed": 1}, "source_guided": False},
}
SOURCES = ["Come on Monday.", "Take 5.", "See Anna.", "Take 7, Paul.", "Go."]
CONCENTRATIONS = [0.5, 0.4, 0.3, 0.2, 0.1]


def write(root: Path, scores: Mapping[tuple[str, str], Sequence[float]], seeds: Sequence[int] = (1,)) -> dict[str, Any]:
    """Files of cells by (method, order), whose sentences have these COMET scores in every seed; return their params."""
    testset = root / "test.jsonl"
    rows = [{"id": f"t{n}", "source": source, "target": "词"} for n, source in enumerate(SOURCES)]
    files.write_jsonl(testset, rows)
    cells = [_cell(root, seed, *system, values) for seed in seeds for system, values in scores.items()]
    for cell in cells:
        values = zip(rows, CONCENTRATIONS, strict=True)
        diagnose(cell, "sig", [{"id": row["id"], "concentration": value, "mean_sig": 1.0} for row, value in values])
    return {
        "cells": cells,
        "metrics": [dataclasses.asdict(metric) for metric in METRICS],
        "resamples": 200,
        "seed": 1,
        "labels": {"directions": {"en-zh": "En→Zh"}, "backbones": {"llada-tiny": "LLaDA-tiny"}},
        "main": "med",
        "orders": {order: ORDERS[order] for _, order in scores},
        "challenge": "stratified",
        "concentration": "gini",
        "testsets": {name(cell): str(testset) for cell in cells},
    }


def _cell(root: Path, seed: int, method: str, order: str, values: Sequence[float]) -> dict[str, Any]:
    place = {"backbone": "llada-tiny", "direction": "en-zh", "testset": "test", "seed": seed}
    cell = {**place, "method": method, "order": order, "steps": 8, "path": str(root / f"seed{seed}" / "study")}
    count = len(values)
    names = {"comet22": "comet|signature", "bleu": "bleu|signature"}
    system = {"comet22": sum(values) / count, "bleu": 30.0, "chrf": 50.0, "sentences": count, "signatures": names}
    put(cell, SCORES, [{"id": f"t{n}", "comet22": value} for n, value in enumerate(values)], **system)
    digests = {"data_digest": "d" * 16, "backbone_digest": "b" * 16, "adapter_digest": f"{seed:016x}"}
    signature = {"decoder": f"engine|{order}", "shifted": False, **digests}
    twice = 2 if "sig" in order else 1
    totals = {
        "calls": 8 * twice * count,
        "slots": 40 * twice * count,
        "passes": 6 * twice * count,
        "within_steps": count,
    }
    texts = [{"id": f"t{n}", "hypothesis": "词"} for n in range(count)]
    put(cell, TRANSLATIONS, texts, signature=signature, sentences=count, **totals)
    return cell
