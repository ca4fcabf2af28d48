"""Tiny random checkpoints in the layouts of the families, their sentences, and what a training on them reads."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import torch

from entropy_valley.model.checkpoint import write_checkpoint
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import new_model
from entropy_valley.model.prompt import train_tokenizer

NAMES, VERBS, THINGS = (
    ("Anna", "the cat", "a small dog"),
    ("sees", "buys", "paints"),
    ("12 houses", "it", "the old red car"),
)
ROWS = [
    {"id": str(number), "source": " ".join(words), "target": " ".join(reversed(words))}
    for number, words in enumerate(itertools.product(NAMES, VERBS, THINGS))
]
SOURCES = [row["source"] for row in ROWS]


def write(folder: Path, name: str, eos: float, context: int = 128) -> None:
    """A checkpoint of family ``name`` in ``folder``.

    Weights are drawn wider than for training: at their usual scale every distribution is flat, all entropies agree
    to 1e-5, and the reveal order is left to the last bit of the logits. EOS and mask rows of the head are stretched,
    the former ``eos`` times, so that both often have the largest logit. The FFN fills whole vectors of a CPU, as every
    released one does: else a row's last bits depend on its place in a pass.
    """
    family = FAMILIES[name]
    tokenizer = train_tokenizer(SOURCES, 300, family)
    shape = dict(width=32, layers=2, heads=4, kv_heads=2, ffn=64)
    model = new_model(name, vocabulary=len(tokenizer), context=context, seed=3, **shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8 if parameter.dim() == 2 else 1)
        model.lm_head.weight[tokenizer.eos_token_id] *= eos
        if not family.causal:
            model.lm_head.weight[tokenizer.mask_token_id] *= 3
    write_checkpoint(model, family, tokenizer, folder)


def training(name: str, precision: str) -> dict[str, Any]:
    """The params of a training of a few steps on :data:`ROWS`."""
    return {
        "backbone": "tiny",
        "family": name,
        "direction": "en-de",
        "seed": 1,
        "prompt": "{src} = ",
        "bos": False,
        "shifted": FAMILIES[name].shifted,
        "precision": precision,
        "training": {
            "max_steps": 2,
            "global_batch": 16,
            "learning_rate": 0.05,
            "warmup": 0.0,
            "weight_decay": 0.01,
            "betas": [0.9, 0.95],
            "clip": 1.0,
            "max_tokens": 96,
            "checkpoint_every": 1,
            "lora": {"rank": 4, "alpha": 8, "dropout": 0.05},
        },
    }
