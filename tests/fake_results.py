"""A results tree with made-up scores, shaped like the paper's: Oracle above EV above Ratio, noise between seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_sets import diagnose, put, rows

from entropy_valley import files
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import ScoredCell

COMET = {"oracle": 0.861, "ratio": 0.8345, "ev": 0.8517}
BLEU = {"oracle": 40.8, "ratio": 36.7, "ev": 38.6, "beam4": 39.0}
BEAM_COMET = {"en-zh": 0.8507, "zh-en": 0.8368, "en-de": 0.8119}
METRICS = (
    Metric("comet22", "toy COMET", 4),
    Metric("bleu", "sacreBLEU", 2, segments=False, by_direction=True),
    Metric("chrf", "chrF", 2),
)
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
    comet: Mapping[str, float] = COMET,
    steps: Sequence[int] = (8,),
) -> dict[str, Any]:
    """Write a set for each backbone, direction and seed; return the params that a rule would hand over.

    ``comet`` are the expected scores of the length methods; with fewer than eight steps they are lower.
    """
    generator = np.random.default_rng(7)
    denoised = [(method, budget) for budget in steps for method in comet]
    systems = [((backbones or {"llada-tiny": (1, 2, 3)}), denoised), (autoregressive or {}, [("beam4", 0)])]
    cells = [
        _cell(root, generator, backbone, direction, seed, method, budget, comet, sentences)
        for group, methods in systems
        for backbone, seeds in group.items()
        for direction in directions
        for seed in seeds
        for method, budget in methods
    ]
    return {
        "cells": cells,
        "revision": 1,
        "metrics": [dataclasses.asdict(metric) for metric in METRICS],
        "resamples": 200,
        "seed": 1,
        "labels": {
            "directions": {name: label for name, (label, _, _) in DIRECTIONS.items()},
            "backbones": LABELS,
        },
        "ratios": {"ratio": {name: ratio for name, (_, _, ratio) in DIRECTIONS.items()}},
        "systems": {name: ["1.2M", "LoRA-SFT"] for name in LABELS},
    }


def _cell(
    root: Path,
    generator: np.random.Generator,
    backbone: str,
    direction: str,
    seed: int,
    method: str,
    budget: int,
    comet: Mapping[str, float],
    sentences: int,
) -> dict[str, Any]:
    denoised = budget > 0
    key = {"backbone": backbone, "direction": direction, "seed": seed, "testset": "test", "method": method}
    key |= {"order": "med", "steps": budget} if denoised else {"order": "", "steps": 0}
    cell = {**key, "path": str(root / direction / backbone / f"seed{seed}" / "matrix")}
    shift = DIRECTIONS[direction][1]
    expected = comet[method] + shift - 0.2 * max(0, 1 / budget - 1 / 8) if denoised else BEAM_COMET[direction]
    noise = generator.normal(expected, 0.02, sentences) + np.random.default_rng(seed).normal(0, 0.05, sentences)
    segments = [{"id": f"t{i}", "comet22": float(x), "chrf": float(100 * x)} for i, x in enumerate(noise)]
    tokens = "zh" if direction.endswith("zh") else "13a"
    system = {
        "comet22": float(np.mean(noise)),
        "bleu": float(BLEU.get(method, 38.0) + 60 * shift + generator.normal(0, 0.3)),
        "chrf": 50.0,
        "sentences": sentences,
        "signatures": {
            "comet22": "unbabel-comet:2.2.7|checkpoint:5f1c2d|precision:32|batch:16",
            "bleu": f"nrefs:1|case:mixed|eff:no|tok:{tokens}|smooth:exp|version:2.6.0",
            "chrf": "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0",
        },
        "digests": {"hypotheses": files.digest([direction, seed, method])},
    }
    put(cell, SCORES, segments, **system)
    beam = "transformers 4.57.6|beam4|lp1|float32|max64"
    signature = {
        "decoder": f"engine r1|med|T{budget}|float32|llada" if denoised else beam,
        "backbone_digest": files.digest(backbone),
        "adapter_digest": files.digest([direction, backbone, seed]),
        "shifted": not backbone.startswith("llada"),
        "data_digest": files.digest(direction),
    }
    probes = {"ev": 5}.get(method, 0)
    passes = probes + min(budget, 6)
    totals = {"calls": (probes + budget) * sentences, "slots": 120 * sentences, "passes": passes * sentences}
    within = min(sentences, sentences * budget // 16)
    counts = {"sentences": sentences, "within_steps": within, "length_mae": 0.0 if method == "oracle" else 1.5}
    texts = [{"id": row["id"], "hypothesis": "词"} for row in segments]
    put(cell, TRANSLATIONS, texts, signature=signature, **counts, **totals)
    return cell


def write_pools(root: Path) -> dict[str, Any]:
    """One direction and seed, trained on each of two pools, the second one worse by 0.1; return their params."""
    cells = []
    for pool, fall in (("50k", 0), ("200k", 0.1)):
        comet = {name: score - fall for name, score in COMET.items()}
        params = write(root / pool, directions=("en-zh",), backbones={"llada-tiny": (1,)}, comet=comet)
        cells += [cell | {"pool": pool} for cell in params["cells"]]
        for cell in params["cells"]:
            put(cell, TRANSLATIONS, signature=ScoredCell(**cell).decoding()["signature"] | {"adapter_digest": pool})
    return params | {"cells": cells}


def write_instruct(root: Path, *, vocabulary: int = 152_064, sentences: int = 40) -> dict[str, Any]:
    """Six variants of an instruction-tuned backbone, most of whose outputs are empty; return their params."""
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
    params = write(root, backbones=dict.fromkeys(variants, (1,)), directions=("en-zh",), sentences=sentences)
    testset = root / "corpus" / "test.jsonl"
    files.write_jsonl(testset, [{"id": f"t{i}", "source": "word", "target": "词" * 25} for i in range(sentences)])
    for name, variant in variants.items():
        if variant["training"] == "LoRA-SFT":
            variant["adapter"] = str(root / "en-zh" / name / "seed1" / "adapter")
            _adapter(Path(variant["adapter"]), generator, vocabulary, 3.0 if variant["shifted"] else 12.7)
    for cell in params["cells"]:
        lengths = generator.integers(1, 6, sentences) * (generator.random(sentences) < 0.1)
        outputs = [{"id": f"t{i}", "hypothesis": "." * length} for i, length in enumerate(lengths)]
        put(cell, TRANSLATIONS, outputs, signature=_instruct_signature(cell, variants))
    return params | {"variants": variants, "testset": str(testset)}


def _adapter(folder: Path, generator: np.random.Generator, vocabulary: int, entropy: float) -> None:
    entropies = generator.normal(entropy, 0.8, 2500)
    lines = [f"{step},{1.2 * value},{value},0.0002,1.0" for step, value in enumerate(entropies, 1)]
    files.write_text(
        folder / "losses.csv", "\n".join(["step,loss,cross_entropy,learning_rate,gradient_norm", *lines]) + "\n"
    )
    files.write_json(folder / "adapter.json", {"vocabulary": vocabulary})


def _instruct_signature(cell: Mapping[str, Any], variants: Mapping[str, Any]) -> dict[str, Any]:
    signature = ScoredCell(**cell).decoding()["signature"]
    variant = variants[cell["backbone"]]
    return signature | {"shifted": variant["shifted"]} | ({} if variant["adapter"] else {"adapter_digest": None})


GRID = (0.5, 0.75, 1.0)
SELECTORS = ("ev_sum", "ev_median", "ev_reassigned_1", "ev_reassigned_2", "ev_reassigned_deciles_1")


def write_selector_checks(root: Path, *, seeds: Sequence[int] = (1, 2), sentences: int = 40) -> dict[str, Any]:
    """EV and the systems that its checks compare it with, with its canvases and valleys; return their params.

    Every source has 12 tokens, and EV takes the grid's ratios in turn.
    """
    params = write(root, backbones={"llada-tiny": seeds}, sentences=sentences)
    generator = np.random.default_rng(5)
    for cell in [cell for cell in params["cells"] if cell["method"] == "ev"]:
        lengths = [int(GRID[place % len(GRID)] * 12) + 1 for place in range(sentences)]
        add_canvases(cell, [{"length": length} for length in lengths])
        diagnose(cell, "valley", valley(generator, sentences))
        params["cells"] += [_rival(cell, method, generator) for method in SELECTORS]
    return params | {"grids": dict.fromkeys(DIRECTIONS, GRID)}


def add_canvases(cell: Mapping[str, Any], canvases: Sequence[Mapping[str, Any]]) -> None:
    """Give each translation of a cell its canvas, and the length of it."""
    texts = zip(rows(cell, TRANSLATIONS), canvases, strict=True)
    put(cell, TRANSLATIONS, [{**text, "canvas": canvas, "length": canvas["length"]} for text, canvas in texts])


def valley(generator: np.random.Generator, sentences: int) -> dict[str, Any]:
    """A valley at offset 0 and at ratio 0.75."""

    def curve(places: Sequence[float], lowest: float, width: float) -> list[dict[str, float]]:
        depths = [((place - lowest) / width) ** 2 for place in places]
        return [
            {"at": at, "mean": 2 + depth + generator.normal(0, 0.01), "standard_error": 0.05, "mean_length": 10 + at}
            | {"sentences": sentences}
            for at, depth in zip(places, depths, strict=True)
        ]

    offsets = curve(range(-2, 3), 0, 2)
    return {
        "offsets": offsets,
        "offsets_complete": [point | {"lowest": 0.2} for point in offsets],
        "ratios": curve([0.4, 0.5, 0.75, 1.0, 1.5], 0.75, 0.5),
        "source_tokens": {f"t{place}": 12 for place in range(sentences)},
        "signature": {},
    }


def _rival(ev: Mapping[str, Any], method: str, generator: np.random.Generator) -> dict[str, Any]:
    """A cell a little below EV's, sentence by sentence."""
    rival, known = {**ev, "method": method}, ScoredCell(**ev)
    scores = [row | {"comet22": row["comet22"] - abs(generator.normal(0, 0.02))} for row in rows(ev, SCORES)]
    mean = float(np.mean([row["comet22"] for row in scores]))
    put(rival, SCORES, scores, **known.scores() | {"comet22": mean})
    put(rival, TRANSLATIONS, rows(ev, TRANSLATIONS), **known.decoding())
    return rival


@pytest.fixture
def params(tmp_path):
    """The params of two backbones' results, one with a single seed, in a tree of its own."""
    return write(tmp_path, backbones={"llada-tiny": (1, 2, 3), "dream-tiny": (1,)})


@pytest.fixture
def matched(tmp_path):
    """The params of a backbone with three seeds beside an autoregressive one that has two of them."""
    return write(tmp_path, autoregressive={"llama3-tiny": (1, 2)})
