"""A results tree with made-up scores, shaped like the paper's: Oracle above EV above Ratio, noise between seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from entropy_valley import files

COMET = {"oracle": 0.861, "ratio": 0.8345, "ev": 0.8517}
BLEU = {"oracle": 40.8, "ratio": 36.7, "ev": 38.6, "beam4": 39.0}
BEAM_COMET = {"en-zh": 0.8507, "zh-en": 0.8368, "en-de": 0.8119}
DIRECTIONS = {"en-zh": ("En→Zh", 0.0, 0.8), "zh-en": ("Zh→En", -0.01, 1.2), "en-de": ("En→De", -0.12, 1.8)}
LABELS = {
    "llada-tiny": "LLaDA-tiny",
    "dream-tiny": "Dream-tiny",
    "diffullama-tiny": "DiffuLLaMA-tiny",
    "llama3-tiny": "LLaMA-3-tiny",
}


def write(
    root: Path,
    *,
    backbones: Mapping[str, Sequence[int]] | None = None,
    autoregressive: Mapping[str, Sequence[int]] | None = None,
    directions: Sequence[str] = tuple(DIRECTIONS),
    sentences: int = 60,
) -> dict[str, Any]:
    """Write score and decoding files for each backbone's seeds; return the spec that a rule would hand over."""
    generator = np.random.default_rng(7)
    systems = [((backbones or {"llada-tiny": (1, 2, 3)}), tuple(COMET)), (autoregressive or {}, ("beam4",))]
    cells = [
        _cell(root, generator, backbone, direction, seed, method, sentences)
        for group, methods in systems
        for backbone, seeds in group.items()
        for direction in directions
        for seed in seeds
        for method in methods
    ]
    return {
        "cells": cells,
        "revision": 1,
        "metric_name": "toy COMET",
        "resamples": 200,
        "seed": 1,
        "labels": {
            "directions": {name: label for name, (label, _, _) in DIRECTIONS.items()},
            "backbones": LABELS,
        },
        "ratios": {name: ratio for name, (_, _, ratio) in DIRECTIONS.items()},
    }


def _cell(
    root: Path, generator: np.random.Generator, backbone: str, direction: str, seed: int, method: str, sentences: int
) -> dict[str, Any]:
    denoised = method in COMET
    folder = root / direction / backbone / f"seed{seed}" / "test" / method / ("med-T8" if denoised else "")
    shift = DIRECTIONS[direction][1]
    comet = COMET[method] + shift if denoised else BEAM_COMET[direction]
    noise = generator.normal(comet, 0.02, sentences) + np.random.default_rng(seed).normal(0, 0.05, sentences)
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
        "decoder": "engine r1|med|T8|float32|llada" if denoised else "transformers 4.57.6|beam4|lp1|float32|max64",
        "backbone_digest": files.digest(backbone),
        "adapter_digest": files.digest([direction, backbone, seed]),
        "shifted": not backbone.startswith("llada"),
        "data_digest": files.digest(direction),
    }
    if denoised:
        signature["canvas_digest"] = files.digest([direction, seed, method])
    probes = {"ev": 5}.get(method, 0)
    totals = {"calls": (probes + 8) * sentences, "slots": 120 * sentences, "passes": (probes + 6) * sentences}
    counts = {"sentences": sentences, "within_steps": sentences // 2, "length_mae": 0.0 if method == "oracle" else 1.5}
    files.write_json(folder / "decoding.json", {"signature": signature, **counts, **totals})
    key = {"backbone": backbone, "direction": direction, "seed": seed, "testset": "test", "method": method}
    steps = {"order": "med", "steps": 8} if denoised else {"order": "", "steps": 0}
    return key | steps | {"path": str(folder / "scores.json")}


def change(path: str | Path, **values: Any) -> None:
    """Overwrite some keys of a JSON file; None removes a key."""
    merged = files.read_json(path) | values
    files.write_json(path, {key: value for key, value in merged.items() if value is not None})


def write_instruct(root: Path, *, vocabulary: int = 152_064, sentences: int = 40) -> dict[str, Any]:
    """Six variants of an instruction-tuned backbone, most of whose outputs are empty; return their spec."""
    generator = np.random.default_rng(11)
    variants = {
        name + ("" if shifted else "-unshifted"): {
            "label": label,
            "prompt": prompt,
            "training": "none" if label == "zero-shot" else "LoRA-SFT",
            "shifted": shifted,
            "natural_shift": True,
            "adapter": None,
        }
        for shifted in (False, True)
        for name, prompt, label in (
            ("sft-plain", "plain", "LoRA-SFT, plain prompt"),
            ("sft-chat", "chat", "LoRA-SFT, chat template"),
            ("zero-chat", "chat", "zero-shot"),
        )
    }
    spec = write(root, backbones=dict.fromkeys(variants, (1,)), directions=("en-zh",), sentences=sentences)
    testset = root / "corpus" / "test.jsonl"
    files.write_jsonl(testset, [{"id": f"t{i}", "source": "word", "target": "词" * 25} for i in range(sentences)])
    for name, variant in variants.items():
        if variant["training"] == "LoRA-SFT":
            variant["adapter"] = str(root / "en-zh" / name / "seed1" / "adapter")
            _adapter(Path(variant["adapter"]), generator, vocabulary, 3.0 if variant["shifted"] else 12.7)
    for cell in spec["cells"]:
        lengths = generator.integers(1, 6, sentences) * (generator.random(sentences) < 0.1)
        outputs = [{"id": f"t{i}", "hypothesis": "." * length} for i, length in enumerate(lengths)]
        files.write_jsonl(Path(cell["path"]).with_name("hypotheses.jsonl"), outputs)
        change(Path(cell["path"]).with_name("decoding.json"), signature=_instruct_signature(cell, variants))
    return spec | {"variants": variants, "testset": str(testset)}


def _adapter(folder: Path, generator: np.random.Generator, vocabulary: int, entropy: float) -> None:
    entropies = generator.normal(entropy, 0.8, 2500)
    rows = [f"{step},{1.2 * value},{value},0.0002,1.0" for step, value in enumerate(entropies, 1)]
    files.write_text(
        folder / "losses.csv", "\n".join(["step,loss,cross_entropy,learning_rate,gradient_norm", *rows]) + "\n"
    )
    files.write_json(folder / "adapter.json", {"vocabulary": vocabulary})


def _instruct_signature(cell: Mapping[str, Any], variants: Mapping[str, Any]) -> dict[str, Any]:
    signature = files.read_json(Path(cell["path"]).with_name("decoding.json"))["signature"]
    variant = variants[cell["backbone"]]
    return signature | {"shifted": variant["shifted"]} | ({} if variant["adapter"] else {"adapter_digest": None})
