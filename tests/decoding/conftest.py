from __future__ import annotations

import itertools

import pytest
import torch

from entropy_valley import files
from entropy_valley.backbone.checkpoint import write_checkpoint
from entropy_valley.backbone.families import FAMILIES
from entropy_valley.backbone.loading import load_backbone, new_model
from entropy_valley.backbone.tokenizer import train_tokenizer
from entropy_valley.canvas.job import Job

NAMES, VERBS, THINGS = (
    ("Anna", "the cat", "a small dog"),
    ("sees", "buys", "paints"),
    ("12 houses", "it", "the old red car"),
)
SOURCES = [" ".join(words) for words in itertools.product(NAMES, VERBS, THINGS)]


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Bit-equality in any company is promised for one thread."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """A tiny random checkpoint folder of each family.

    Weights are drawn wider than for training: at their usual scale every distribution is flat, all entropies agree
    to 1e-5, and the reveal order is left to the last bit of the logits. EOS and mask rows of the head are stretched,
    so that both often have the largest logit.
    """
    root = tmp_path_factory.mktemp("checkpoints")
    for name, family in FAMILIES.items():
        tokenizer = train_tokenizer(SOURCES, 300, family)
        model = new_model(
            name, vocabulary=len(tokenizer), width=32, layers=2, heads=4, kv_heads=2, ffn=48, context=128, seed=3
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(8 if parameter.dim() == 2 else 1)
            special = [tokenizer.eos_token_id] if family.causal else [tokenizer.eos_token_id, tokenizer.mask_token_id]
            model.lm_head.weight[special] *= 3
        write_checkpoint(model, family, tokenizer, root / name)
    return root


@pytest.fixture(scope="session", params=sorted(name for name, family in FAMILIES.items() if not family.causal))
def backbone(checkpoints, request):
    return load_backbone(checkpoints / request.param, request.param)


@pytest.fixture(scope="session")
def llada(checkpoints):
    return load_backbone(checkpoints / "llada", "llada")


@pytest.fixture(scope="session")
def llama3(checkpoints):
    return load_backbone(checkpoints / "llama3", "llama3")


@pytest.fixture
def testset(tmp_path):
    """Twelve pairs of different lengths."""
    path = tmp_path / "test.jsonl"
    pairs = zip(SOURCES[::5] + SOURCES[1::5], SOURCES[::-1], strict=False)
    files.write_jsonl(
        path, [{"id": f"s{n}", "source": source, "target": target} for n, (source, target) in enumerate(pairs)]
    )
    return path


@pytest.fixture
def no_model(monkeypatch):
    """From here on a job that loads the model fails."""

    def refuse():
        monkeypatch.setattr(Job, "backbone", property(lambda job: pytest.fail("the model was loaded")))

    return refuse
