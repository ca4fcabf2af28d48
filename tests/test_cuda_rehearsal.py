"""The road of CUDA without a GPU: passes of the released shapes on tensors that are on ``cuda`` and have no data.

Each operation checks devices, dtypes, shapes and arguments as on a GPU. Bits, speed and kernels are not seen. It needs
a build of torch for CUDA, as `pip install torch==2.11.0` is; such a build is imported without a GPU.
"""

from __future__ import annotations

import random

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.orders import make_denoiser, reveal_counts
from entropy_valley.decoding.prompts import NO_REUSE, Reuse
from entropy_valley.decoding.requests import Canvas
from entropy_valley.model.attention import Packed, hidden_states
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import Backbone, empty_model
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.training.adapter import attach_lora
from entropy_valley.training.loss import MicroBatch, cross_entropies
from entropy_valley.training.settings import Lora
from entropy_valley.translation.job import TOKENS

pytestmark = pytest.mark.skipif(torch.version.cuda is None, reason="this build of torch is for CPUs")
DIFFUSION = sorted(name for name, family in FAMILIES.items() if not family.causal)
LORA = Lora(rank=64, alpha=128, dropout=0.05)


@pytest.fixture(autouse=True)
def a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (80 * 10**9, 80 * 10**9))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield


def model_of(name, layers=None):
    """A released model in bfloat16 on ``cuda``, of full width; without ``layers`` also of full depth."""
    shape = {"max_position_embeddings": 4096, **FAMILIES[name].releases[0].config}
    shape |= {"num_hidden_layers": layers} if layers else {}
    with unset_fake_temporarily():
        empty = empty_model(FAMILIES[name], shape, torch.bfloat16).eval().requires_grad_(False)
    return empty.to_empty(device="cuda")


def read(name, model, attention=BOTH_WAYS, reuse=NO_REUSE, sig=False, **engine):
    """A pass of an engine over some canvases: what it says of the masked slots, on the GPU."""
    family, draw = FAMILIES[name], random.Random(1)
    ids = family.releases[0].ids
    special = ids["mask"], ids["eos"], None, ""
    backbone = Backbone(family, model, None, *special, family.shifted, 4096, attention=attention)
    canvases = []
    for length in (1, 7, 30, 30):
        prompt = [draw.randrange(1000) for _ in range(draw.randint(10, 40))]
        counts = () if sig else [count for count in reveal_counts(length, 8) if count]
        given = {"sourceless": prompt[:4]} if sig else {"reuse": reuse}
        canvases.append(Canvas(prompt, length, counts, **given))
    engine = Engine(backbone, **engine)
    with torch.inference_mode():
        seen = engine._attempt(engine._batch(list(enumerate(canvases))), make_denoiser("med"))
    assert {column.device.type for column in seen.values} == {"cuda"}
    assert [column.dtype for column in seen.values] == [torch.int64, *[torch.float64] * 3]
    assert {len(column) for column in seen.values} == {68}
    return seen


@pytest.mark.parametrize("engine", [{"fill": TOKENS["cuda"]}, {"budget": BUDGET["cuda"]}], ids=["padded", "plain"])
@pytest.mark.parametrize("name", DIFFUSION)
def test_a_pass_of_full_depth(name, engine):
    read(name, model_of(name), **engine)


@pytest.mark.parametrize("engine", [{"fill": TOKENS["cuda"]}, {}], ids=["padded", "plain"])
@pytest.mark.parametrize("name", ["llada", "dream"])
def test_other_ways_to_decode(name, engine):
    model = model_of(name, 2)
    read(name, model, PREFIX, **engine)
    read(name, model, reuse=Reuse(4), **engine)
    assert read(name, model, sig=True, **engine).sig.dtype == torch.float64
    attach_lora(model, FAMILIES[name], LORA, 1).eval()
    read(name, model, **engine)


@pytest.mark.parametrize("products", ["float32", "backbone"])
@pytest.mark.parametrize("name", ["llada", "dream", "llama3"])
def test_the_forward_pass_of_a_training(name, products):
    """The backward pass asks CUDA for its streams: only a GPU can run it."""
    model = attach_lora(model_of(name, 2), FAMILIES[name], LORA.model_copy(update={"products": products}), 1).train()
    ids, rows = torch.zeros(1, 256, dtype=torch.long, device="cuda"), torch.arange(1, 100, device="cuda")
    batch = MicroBatch(Packed(ids, ids, (64,) * 4), rows, rows, rows.float())
    loss = cross_entropies(model, batch, FAMILIES[name].shifted) @ batch.weights
    assert (loss.device.type, loss.dtype, loss.requires_grad) == ("cuda", torch.float32, True)


def test_an_autoregressive_pass_of_full_depth():
    model = model_of("llama3")
    ids = torch.zeros(1, 64, dtype=torch.long, device="cuda")
    with torch.inference_mode():
        states = hidden_states(model, Packed(ids, ids, (32, 32)))
    assert (states.device.type, states.shape) == ("cuda", (64, model.config.hidden_size))
