"""A tiny corpus and the ways tests train on it."""

import itertools
from pathlib import Path

from entropy_valley.model.families import FAMILIES
from entropy_valley.model.prompt import Prompt
from entropy_valley.training import loss as canvases
from entropy_valley.training.loss import ONE_PASS, Batches, fitting_pairs
from entropy_valley.training.settings import Loss

REPOSITORY = Path(__file__).parents[1]
NAMES, VERBS, THINGS = ("Anna", "the cat", "a small dog"), ("sees", "buys"), ("12 houses", "it", "the old red car")
ROWS = [
    {"id": str(number), "source": f"{name} {verb} {thing}", "target": f"{thing} {verb} {name}"[: 9 + 2 * number]}
    for number, (name, verb, thing) in enumerate(itertools.product(NAMES, VERBS, THINGS))
]
TEMPLATE = "De: {src}\n"
SETTINGS = {
    "max_steps": 8,
    "global_batch": 8,
    "learning_rate": 0.01,
    "warmup": 0.1,
    "weight_decay": 0.01,
    "betas": [0.9, 0.95],
    "clip": 1.0,
    "max_tokens": 96,
    "lora": {"rank": 2, "alpha": 4, "dropout": 0.0},
}
RUN = {"processes": 1, "micro_tokens": 40}  # how it runs


def pairs_of(backbone, max_tokens=96):
    prompt = Prompt(TEMPLATE, backbone.tokenizer)
    tokens = ((prompt.encode(row["source"]), prompt.tokens(row["target"])) for row in ROWS)
    return fitting_pairs(tokens, backbone.eos_id, max_tokens)


def canvases_of(backbone, *, pairs=None, batch=8, seed=1, passes=ONE_PASS, **loss):
    pairs = pairs or pairs_of(backbone)
    order = Batches(pairs.lengths, batch, seed)
    return canvases.Canvases(pairs, order, Loss(**loss), backbone.mask_id, seed, passes, prefix=backbone.prefix)


def continuations_of(backbone, *, batch=8, seed=1, passes=ONE_PASS, normaliser="token"):
    pairs = pairs_of(backbone)
    order, loss = Batches(pairs.lengths, batch, seed), Loss(normaliser=normaliser)
    return canvases.Canvases(pairs, order, loss, None, seed, passes)


def batches_of(backbone, **options):
    return (continuations_of if backbone.family.causal else canvases_of)(backbone, **options)


def spec(family="llada", *, dropout=0.0, **training):
    """The params of the rule ``train``."""
    return {
        "backbone": "tiny",
        "family": family,
        "direction": "en-de",
        "seed": 1,
        "prompt": TEMPLATE,
        "bos": False,
        "shifted": FAMILIES[family].shifted,
        "precision": "float32",
        "training": SETTINGS | {"lora": SETTINGS["lora"] | {"dropout": dropout}} | training,
    }
