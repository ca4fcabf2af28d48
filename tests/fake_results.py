"""A results tree with made-up scores, shaped like the paper's: Oracle above EV above Ratio, noise between seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from entropy_valley import files

COMET = {"oracle": 0.861, "ratio": 0.8345, "ev": 0.8517}
BLEU = {"oracle": 40.8, "ratio": 36.7, "ev": 38.6}
DIRECTIONS = {"en-zh": ("En→Zh", 0.0, 0.8), "zh-en": ("Zh→En", -0.01, 1.2), "en-de": ("En→De", -0.12, 1.8)}


def write(
    root: Path,
    *,
    backbones: Mapping[str, Sequence[int]] | None = None,
    directions: Sequence[str] = tuple(DIRECTIONS),
    sentences: int = 60,
) -> dict[str, Any]:
    """Write score and decoding files for each backbone's seeds; return the spec that a rule would hand over."""
    generator = np.random.default_rng(7)
    cells = [
        _cell(root, generator, backbone, direction, seed, method, sentences)
        for backbone, seeds in (backbones or {"llada-tiny": (1, 2, 3)}).items()
        for direction in directions
        for seed in seeds
        for method in COMET
    ]
    return {
        "cells": cells,
        "revision": 1,
        "metric_name": "toy COMET",
        "resamples": 200,
        "seed": 1,
        "labels": {
            "directions": {name: label for name, (label, _, _) in DIRECTIONS.items()},
            "backbones": {"llada-tiny": "LLaDA-tiny", "dream-tiny": "Dream-tiny", "diffullama-tiny": "DiffuLLaMA-tiny"},
        },
        "ratios": {name: ratio for name, (_, _, ratio) in DIRECTIONS.items()},
    }


def _cell(
    root: Path, generator: np.random.Generator, backbone: str, direction: str, seed: int, method: str, sentences: int
) -> dict[str, Any]:
    folder = root / direction / backbone / f"seed{seed}" / "test" / method / "med-T8"
    shift = DIRECTIONS[direction][1]
    noise = generator.normal(COMET[method] + shift, 0.02, sentences) + np.random.default_rng(seed).normal(
        0, 0.05, sentences
    )
    segments = [{"id": f"t{i}", "comet22": float(x), "chrf": float(100 * x)} for i, x in enumerate(noise)]
    files.write_jsonl(folder / "scores.jsonl", segments)
    tokens = "zh" if direction.endswith("zh") else "13a"
    system = {
        "comet22": float(np.mean(noise)),
        "bleu": float(BLEU[method] + 60 * shift + generator.normal(0, 0.3)),
        "chrf": 50.0,
        "sentences": sentences,
        "signatures": {
            "comet22": "unbabel-comet:2.2.7|checkpoint:5f1c2d|precision:32|batch:16",
            "bleu": f"nrefs:1|case:mixed|eff:no|tok:{tokens}|smooth:exp|version:2.6.0",
            "chrf": "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0",
        },
        "digests": {"hypotheses": files.digest([direction, seed, method])},
    }
    files.write_json(folder / "scores.json", system)
    signature = {
        "decoder": "engine r1|med|T8|float32|llada",
        "backbone_digest": files.digest(backbone),
        "adapter_digest": files.digest([direction, backbone, seed]),
        "data_digest": files.digest(direction),
        "canvas_digest": files.digest([direction, seed, method]),
    }
    files.write_json(folder / "decoding.json", {"signature": signature, "sentences": sentences})
    key = {"backbone": backbone, "direction": direction, "seed": seed, "testset": "test", "method": method}
    return key | {"order": "med", "steps": 8, "path": str(folder / "scores.json")}


def change(path: str | Path, **values: Any) -> None:
    """Overwrite some keys of a JSON file; None removes a key."""
    merged = files.read_json(path) | values
    files.write_json(path, {key: value for key, value in merged.items() if value is not None})
