"""Canvases and texts beside the made-up scores of :mod:`fake_results`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fake_results
from fake_sets import put, rows

from entropy_valley import files
from entropy_valley.results import SCORES, TRANSLATIONS

GRID = {"candidates": [6, 8, 9], "scores": [0.9, 0.3, 0.5]}  # of EV, which takes 8
TRUE = 10  # slots of the reference and its EOS
LENGTHS = {"oracle": TRUE, "ratio": 6, "ev": 8}


def add_canvases(
    params: Mapping[str, Any], length: Callable[[Mapping[str, Any], int], int] = lambda cell, _: LENGTHS[cell["method"]]
) -> Mapping[str, Any]:
    """Write each cell's canvases, ``length`` of the cell and the number of the sentence; return the params."""
    for cell in params["cells"]:
        count = len(rows(cell, TRANSLATIONS))
        fake_results.add_canvases(cell, [{"length": length(cell, number), **GRID} for number in range(count)])
    return params


PLAIN = {
    "source": "Tap Reset.",
    "reference": "点击重置。",
    "ratio": ("重置。", 0.5),
    "ev": ("点击重置。", 0.5),
    "true": 8,
}


def write_cases(root: Path, *sentences: Mapping[str, Any]) -> dict[str, Any]:
    """A run of Ratio, EV and Oracle with these sentences, each like :data:`PLAIN` but for what it says; its params.

    ``ratio`` and ``ev`` are an output and its score, ``true`` the slots of the reference.
    """
    texts = [PLAIN | sentence for sentence in sentences]
    params = fake_results.write(root, backbones={"llada-tiny": (1,)}, directions=("en-zh",), sentences=len(texts))
    add_canvases(params, lambda cell, at: texts[at]["true"] if cell["method"] == "oracle" else LENGTHS[cell["method"]])
    pairs = [{"id": f"t{at}", "source": text["source"], "target": text["reference"]} for at, text in enumerate(texts)]
    files.write_jsonl(root / "testset.jsonl", pairs)
    for cell in params["cells"]:
        for file, key, place in ((TRANSLATIONS, "hypothesis", 0), (SCORES, "comet22", 1)):
            values = [text.get(cell["method"], (text["reference"], 0.9))[place] for text in texts]
            put(cell, file, [row | {key: value} for row, value in zip(rows(cell, file), values, strict=True)])
    return params | {"sentences": str(root / "testset.jsonl")}
