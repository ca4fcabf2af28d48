"""The LM head of a bfloat16 model: logits in float32, or rounded as the model rounds."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from entropy_valley.decoding import reference
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.head import Head, float32_product, sourced_values
from entropy_valley.decoding.requests import Canvas, Queue
from entropy_valley.model.load import load_backbone

PROMPT, SOURCELESS = [5, 6, 7, 8, 9], [5, 9]


@pytest.fixture(scope="module")
def both(checkpoints):
    """A bfloat16 model whose head is read in float32, and the same model read as it is."""
    wide = load_backbone(checkpoints / "llada", "llada", dtype="bfloat16")
    return wide, dataclasses.replace(wide, float32_head=False)


def head_and_states(bias=False):
    generator = torch.Generator().manual_seed(0)
    head = torch.nn.Linear(16, 300, bias=bias).bfloat16().requires_grad_(False)
    head.weight.data = torch.randn(300, 16, generator=generator).bfloat16()
    return head, torch.randn(50, 16, generator=generator).bfloat16()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("wrapped", [False, True], ids=["linear", "more"])
@torch.inference_mode()
def test_the_logits_are_those_of_the_same_weights_in_float32(bias, wrapped):
    head, states = head_and_states(bias)
    exact = states.double() @ head.weight.double().t() + (head.bias.double() if bias else 0)
    module = torch.nn.Sequential(head) if wrapped else head
    wide, rounded = (
        torch.cat([block for _, block in Head(module, float32).blocks(states)], 1) for float32 in (True, False)
    )
    assert wide.dtype == rounded.dtype == torch.float32
    torch.testing.assert_close(wide.double(), exact, rtol=1e-5, atol=1e-5)
    assert torch.equal(rounded, rounded.bfloat16().float()) and not torch.equal(wide, wide.bfloat16().float())
    assert head.weight.dtype == torch.bfloat16


@torch.inference_mode()
def test_the_sig_is_of_the_same_logits():
    head, states = head_and_states()
    own, other = states.tensor_split(2)
    p, q = ((rows.float() @ head.weight.float().t()).double() for rows in (own, other))
    for logits in (p, q):
        logits[:, 7] = float("-inf")
    p, q = p.log_softmax(-1), q.log_softmax(-1)
    sig = sourced_values(Head(head, True), own, other, torch.arange(25), torch.arange(0), 7, 2)[1]
    torch.testing.assert_close(sig, (p.exp() * (p - q)).nansum(-1), rtol=1e-6, atol=1e-9)


def test_a_gpus_product_of_bfloat16_is_float32():
    """On tensors without data: torch's own check of shapes and types."""
    with FakeTensorMode():
        states, weight = (torch.empty(rows, 16, dtype=torch.bfloat16, device="cuda") for rows in (5, 300))
        for bias in (None, torch.empty(300, dtype=torch.bfloat16, device="cuda")):
            product = float32_product(states, weight, bias)
            assert (product.shape, product.dtype) == ((5, 300), torch.float32)


def test_engine_and_reference_read_the_head_alike(both):
    """The two round in different places before the head. What is left behind it is less than the head's rounding."""
    for backbone in both:
        canvas = Canvas(PROMPT, 9, sourceless=SOURCELESS)
        ((_, reading),) = Engine(backbone).run(Queue([(0, canvas)]))
        logits = reference.slot_logits(backbone, PROMPT, [backbone.mask_id] * 9)
        rounded = logits.isinf() | (logits == logits.bfloat16())
        assert rounded.all().item() != backbone.float32_head
        entropies, _ = reference.read(backbone, PROMPT, [backbone.mask_id] * 9)
        assert reading.entropies == pytest.approx(entropies, rel=0.2)
    wide, narrow = (next(Engine(one).run(Queue([(0, Canvas(PROMPT, 9))])))[1] for one in both)
    assert wide != narrow
    assert wide.entropies == pytest.approx(narrow.entropies, rel=0.2)


def test_a_float32_model_has_one_head(checkpoints):
    backbone = load_backbone(checkpoints / "llada", "llada")
    for canvas in (Canvas(PROMPT, 9), Canvas(PROMPT, 9, sourceless=SOURCELESS)):
        one, other = (
            next(Engine(dataclasses.replace(backbone, float32_head=wide)).run(Queue([(0, canvas)])))[1]
            for wide in (True, False)
        )
        assert one == other
