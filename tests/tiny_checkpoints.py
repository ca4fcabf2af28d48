"""Tiny random checkpoint folders for tests, and for the comparison in exactness.py, with their fixtures."""

import itertools
from pathlib import Path

import pytest
import torch

from entropy_valley.experiment.demo.pretraining import new_model, train_tokenizer
from entropy_valley.model import checkpoint
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone
from entropy_valley.translation.job import Execution, RunModel

_WORDS = (("Anna", "the cat", "a small dog"), ("sees", "buys", "paints"), ("12 houses", "it", "the old red car"))
ROWS = [
    {"id": str(number), "source": " ".join(words), "target": " ".join(reversed(words))}
    for number, words in enumerate(itertools.product(*_WORDS))
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
    checkpoint.write_checkpoint(model, family, tokenizer, folder)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Bit-equality in any company is promised for one thread."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """A tiny random checkpoint folder of each family."""
    root = tmp_path_factory.mktemp("checkpoints")
    for name, family in FAMILIES.items():
        write(root / name, name, eos=3 if family.causal else 4)
    return root


@pytest.fixture(scope="session", params=sorted(name for name, family in FAMILIES.items() if not family.causal))
def diffusion(checkpoints, request):
    """A backbone of each masked diffusion family."""
    return load_backbone(checkpoints / request.param, request.param)


@pytest.fixture(scope="session", params=["dream", "llada"])
def backbone(checkpoints, request):
    """A backbone with a shift and biases, and one without. DiffuLLaMA's is the shift of the one in the architecture of
    the other, for which test_jobs.py is enough; chats make no difference to how a canvas is filled."""
    return load_backbone(checkpoints / request.param, request.param)


@pytest.fixture(scope="session")
def llada(checkpoints):
    return load_backbone(checkpoints / "llada", "llada")


@pytest.fixture(scope="session")
def llama3(checkpoints):
    return load_backbone(checkpoints / "llama3", "llama3")


def run_model(folder, family, adapter=None, prompt="{src}", bos=False):
    """What a job knows of a run before it loads the model."""
    params = {"family": family, "prompt": prompt, "bos": bos, "shifted": False, "precision": "float32"}
    return RunModel(params, Execution(Path(folder), adapter))
