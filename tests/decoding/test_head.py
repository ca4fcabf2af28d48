"""The LM head: values of slots, the SIG of slots, and a bfloat16 model's logits in float32, or rounded as it rounds."""

import dataclasses
import math

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from entropy_valley.decoding import head as heads
from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.head import Head, float32_product, slot_values, sourced_values
from entropy_valley.model.load import load_backbone


def random_head(rows, vocabulary, scale, seed=0):
    generator = torch.Generator().manual_seed(seed)
    head = torch.nn.Linear(16, vocabulary, bias=False)
    head.weight.data = torch.randn(vocabulary, 16, generator=generator) * scale
    return head, torch.randn(rows, 16, generator=generator)


@pytest.fixture(params=[None, (512, 4096), (9, 30), (50, 7), (50, 1)], ids=str)
def block(request, monkeypatch):
    """The rows and vocabulary entries held at once: as they are, all, several of both, single ones."""
    if request.param:
        monkeypatch.setitem(heads.BLOCK, "cpu", request.param)


@pytest.mark.parametrize("scale", [0.01, 1, 5, 30])
@torch.inference_mode()
def test_they_are_those_of_a_float64_softmax_without_the_mask_token(scale, block):
    head, states = random_head(50, 300, scale)
    # Not head(states): a product of few columns rounds otherwise.
    logits = torch.cat([part for _, part in Head(head).blocks(states)], 1).double()
    logits[:, 7] = float("-inf")
    probability = logits.softmax(-1)
    values = slot_values(Head(head), states, mask_id=7, eos_id=2)
    assert torch.equal(values.token, probability.argmax(-1))
    torch.testing.assert_close(values.entropy, torch.special.entr(probability).sum(-1), rtol=2e-5, atol=1e-12)
    torch.testing.assert_close(values.logprob.exp(), probability.max(-1).values, rtol=1e-6, atol=0)
    torch.testing.assert_close(values.eos, probability[:, 2].log(), rtol=1e-6, atol=1e-6)


@torch.inference_mode()
def test_nearly_certain_slots_keep_their_order(block):
    head = torch.nn.Linear(1, 5, bias=False)
    head.weight.data = torch.tensor([[1.0], [0.0], [0.0], [0.0], [0.0]])
    gaps = torch.tensor([[22.0], [21.9], [18.0], [17.9]])  # 1 + e^-22 is 1 in float32
    values = slot_values(Head(head), gaps, mask_id=4, eos_id=2).entropy
    assert torch.equal(values.argsort(), torch.arange(4))
    assert (values.diff() > 0).all()


@torch.inference_mode()
def test_equal_logits_give_the_lower_token(block):
    head = torch.nn.Linear(1, 300, bias=False)
    head.weight.data.zero_()
    values = slot_values(Head(head), torch.ones(5, 1), mask_id=0, eos_id=2)
    assert values.token.tolist() == [1] * 5
    torch.testing.assert_close(values.entropy, torch.full((5,), 299.0, dtype=torch.float64).log())


# --- SIG against its definition, where that can be computed, and where only the exact answer can.

MASK, EOS = 7, 2


def logits_as_states(*rows):
    """A head that gives each row as its logits, behind it a mask token that would win."""
    states = torch.tensor([[*row, 99.0] for row in rows])
    head = torch.nn.Linear(states.shape[1], states.shape[1], bias=False)
    head.weight.data = torch.eye(states.shape[1])
    return head, states, states.shape[1] - 1


def sig_of(own, other):
    head, states, mask = logits_as_states(*own, *other)
    own, other = states.tensor_split(2)
    return sourced_values(Head(head), own, other, *every(own), mask, 0)[1]


def random_pair(scale, rows=50, vocabulary=100):
    head, states = random_head(2 * rows, vocabulary, scale)
    return head, *states.tensor_split(2)


def every(states):
    """All rows are compared, no others are there."""
    return torch.arange(len(states)), torch.arange(0)


@torch.inference_mode()
def test_by_hand(block):
    """(1/2, 1/2) against (1/4, 3/4): ½ log 2 + ½ log 2/3. The mask has no part."""
    halves, quarters = [[0.0, 0.0]], [[0.0, math.log(3)]]
    assert sig_of(halves, quarters).item() == pytest.approx(math.log(4 / 3) / 2, rel=1e-6)
    assert sig_of(quarters, quarters).item() == 0


@pytest.mark.parametrize("scale", [0.01, 1, 5, 30])
@torch.inference_mode()
def test_it_is_the_divergence_of_two_float64_softmaxes(scale, block):
    head, own, other = random_pair(scale)
    p, q = (torch.cat([part for _, part in Head(head).blocks(states)], 1).double() for states in (own, other))
    p, q = (torch.cat([z[:, :MASK], z[:, MASK + 1 :]], 1).log_softmax(-1) for z in (p, q))
    values, sigs = sourced_values(Head(head), own, other, *every(own), MASK, EOS)
    torch.testing.assert_close(sigs, (p.exp() * (p - q)).sum(-1), rtol=1e-9, atol=1e-13)
    assert all(map(torch.equal, values, slot_values(Head(head), own, MASK, EOS)))


@torch.inference_mode()
def test_nearly_equal_distributions_keep_their_difference(block):
    """Four equal logits, one of them raised by d: log((3 + e^d) / 4) - d / 4 = 3 d² / 32 + O(d³)."""
    steps = [2.0**-10, 2.0**-20, 2.0**-21, 2.0**-22]
    sigs = sig_of([[0.0] * 4] * 4, [[0.0, 0.0, step, 0.0] for step in steps])
    expected = torch.tensor([3 * step**2 / 32 for step in steps], dtype=torch.float64)
    torch.testing.assert_close(sigs, expected, rtol=1e-3, atol=0)
    assert (sigs.diff() < 0).all()


@torch.inference_mode()
def test_distributions_that_share_nothing_stay_finite(block):
    """All mass on one token, e^-800 of it on the other: 800 nats, and 3e4."""
    for gap in (800.0, 3e4):
        sigs = sig_of([[gap, 0.0, 0.0]], [[0.0, gap, 0.0]])
        assert sigs.item() == pytest.approx(gap)


@torch.inference_mode()
def test_neither_chunks_nor_neighbours_change_a_row(monkeypatch):
    head, own, other = random_pair(2, rows=300)
    monkeypatch.setitem(heads.BLOCK, "cpu", (512, 30))

    def columns(*rows):
        """Values and SIG of these rows alone, or of all."""
        these = [own[[*rows]], other[[*rows]]] if rows else [own, other]
        values, sigs = sourced_values(Head(head), *these, *every(these[0]), MASK, EOS)
        return *values, sigs

    whole, alone = columns(), [columns(row) for row in (0, 150, 299)]
    monkeypatch.setitem(heads.BLOCK, "cpu", (4, 30))
    for column, chunked, parts in zip(whole, columns(), zip(*alone, strict=True), strict=True):
        assert torch.equal(column, chunked) and torch.equal(column[[0, 150, 299]], torch.cat(parts))


@torch.inference_mode()
def test_rows_that_are_not_compared_have_values_and_no_sig():
    head, own, other = random_pair(2)
    places = torch.arange(50)
    paired, others = places[places % 3 == 1], places[places % 3 != 1]
    values, sigs = sourced_values(Head(head), own, other[paired], paired, others, MASK, EOS)
    assert all(map(torch.equal, values, slot_values(Head(head), own, MASK, EOS)))
    assert torch.equal(sigs[paired], sourced_values(Head(head), own, other, *every(own), MASK, EOS)[1][paired])
    assert sigs[others].isnan().all()


# --- The head of a bfloat16 model.

PROMPT, SOURCELESS = [5, 6, 7, 8, 9], [5, 9]


@pytest.fixture(scope="module")
def both(checkpoints):
    """A bfloat16 model whose head is read in float32, and the same model read as it is."""
    wide = load_backbone(checkpoints / "llada", "llada", dtype="bfloat16")
    return wide, dataclasses.replace(wide, float32_head=False)


def half_head_and_states():
    generator = torch.Generator().manual_seed(0)
    head = torch.nn.Linear(16, 300, bias=False).bfloat16().requires_grad_(False)
    head.weight.data = torch.randn(300, 16, generator=generator).bfloat16()
    return head, torch.randn(50, 16, generator=generator).bfloat16()


@pytest.mark.parametrize("wrapped", [False, True], ids=["linear", "more"])
@torch.inference_mode()
def test_the_logits_are_those_of_the_same_weights_in_float32(wrapped):
    head, states = half_head_and_states()
    exact = states.double() @ head.weight.double().t()
    module = torch.nn.Sequential(head) if wrapped else head
    wide, rounded = (
        torch.cat([block for _, block in Head(module, float32).blocks(states)], 1) for float32 in (True, False)
    )
    assert wide.dtype == rounded.dtype == torch.float32
    torch.testing.assert_close(wide.double(), exact, rtol=1e-5, atol=1e-5)
    assert torch.equal(rounded, rounded.bfloat16().float()) and not torch.equal(wide, wide.bfloat16().float())
    assert head.weight.dtype == torch.bfloat16


def test_a_gpus_product_of_bfloat16_is_float32():
    """On tensors without data: torch's own check of shapes and types."""
    with FakeTensorMode():
        states, weight = (torch.empty(rows, 16, dtype=torch.bfloat16, device="cuda") for rows in (5, 300))
        product = float32_product(states, weight)
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
