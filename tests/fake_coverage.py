"""Made-up results of EV and the fixed ratios whose retention, length ratios and losses can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fake_orders
from fake_sets import name, put

from entropy_valley import files
from entropy_valley.results import TRANSLATIONS

SOURCES = (
    "Under #PRS_ORG#, tap Sign out.",
    "Take 5 of 12.",
    "Go.",
    "Call #NAME# and #PRS_ORG# at 7.",
    "Please wait.",
)
TOKENS = ((10, 4), (5, 3), (3, 3), (10, 7), (5, 10))  # r: 0.4, 0.6, 1, 0.7, 2
CANDIDATES = ([6, 8], [3, 4, 5], [9, 10], [5, 6], [5, 6])  # the references' canvases: 5, 4, 4, 8, 11
SCORES = {"ratio": [0.6, 0.7, 0.8, 0.4, 0.5], "ratio_eos": [0.4, 0.4, 0.4, 0.4, 0.6], "ev": [0.5] * 5}
OUTPUTS = {  # of EV, in either run; those of the others are empty
    1: ["在#PRS_ORG#下", "5 / 12", "", "#NAME#", ""],
    2: ["Sign", "5", "", "#NAME##PRS_ORG#7", ""],
}


def write(root: Path, scores: Mapping[str, list[float]] = SCORES) -> dict[str, Any]:
    """Files of two runs of each system; return the params of their tables."""
    params = fake_orders.write(root, {(method, "med"): values for method, values in scores.items()}, seeds=(1, 2))
    names = [f"t{number}" for number in range(len(SOURCES))]
    rows = [{"id": one, "source": text, "target": "词"} for one, text in zip(names, SOURCES, strict=True)]
    files.write_jsonl(root / "test.jsonl", rows)
    tokens = [{"id": one, "source_tokens": x, "target_tokens": y} for one, (x, y) in zip(names, TOKENS, strict=True)]
    files.write_jsonl(root / "tokens.jsonl", tokens)
    for cell in params["cells"]:
        texts = OUTPUTS[cell["seed"]] if cell["method"] == "ev" else [""] * 5
        outputs = zip(names, texts, CANDIDATES, strict=True)
        rows = [{"id": one, "hypothesis": text, "canvas": {"candidates": slots}} for one, text, slots in outputs]
        put(cell, TRANSLATIONS, rows)
    paths = {name(cell): str(root / "tokens.jsonl") for cell in params["cells"]}
    return params | {"tokens": paths, "buckets": {"en-zh": [0.6, 0.8]}, "eos": False, "paper": {}, "shown": ["comet22"]}
