from __future__ import annotations

import pytest
import torch

from entropy_valley.decoding import head as head_module
from entropy_valley.decoding.head import Head, slot_values


def head_and_states(rows, vocabulary, scale, seed=0):
    generator = torch.Generator().manual_seed(seed)
    head = torch.nn.Linear(16, vocabulary, bias=False)
    head.weight.data = torch.randn(vocabulary, 16, generator=generator) * scale
    return head, torch.randn(rows, 16, generator=generator)


@pytest.fixture(params=[None, (512, 4096), (9, 300), (50, 7), (50, 1)], ids=str)
def block(request, monkeypatch):
    """The rows and vocabulary entries held at once: as they are, all, several of both, single ones."""
    if request.param:
        monkeypatch.setitem(head_module.BLOCK, "cpu", request.param)


@pytest.mark.parametrize("scale", [0.01, 1, 5, 30])
@torch.inference_mode()
def test_they_are_those_of_a_float64_softmax_without_the_mask_token(scale, block):
    head, states = head_and_states(50, 300, scale)
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
def test_the_mask_token_is_never_revealed(block):
    head, states = head_and_states(64, 20, 1)
    head.weight.data[3] *= 50
    assert (head(states).argmax(-1) == 3).any()
    assert (slot_values(Head(head), states, mask_id=3, eos_id=2).token != 3).all()


@torch.inference_mode()
def test_neither_chunks_nor_neighbours_change_a_row(monkeypatch):
    head, states = head_and_states(300, 500, 2)
    whole = slot_values(Head(head), states, mask_id=0, eos_id=2)
    monkeypatch.setitem(head_module.BLOCK, "cpu", (4, 4096))
    chunked = slot_values(Head(head), states, mask_id=0, eos_id=2)
    alone = [slot_values(Head(head), states[row : row + 1], mask_id=0, eos_id=2) for row in (0, 150, 299)]
    for column in range(4):
        assert torch.equal(whole[column], chunked[column])
        assert torch.equal(whole[column][[0, 150, 299]], torch.cat([values[column] for values in alone]))


@torch.inference_mode()
def test_equal_logits_give_the_lower_token(block):
    head = torch.nn.Linear(1, 300, bias=False)
    head.weight.data.zero_()
    values = slot_values(Head(head), torch.ones(5, 1), mask_id=0, eos_id=2)
    assert values.token.tolist() == [1] * 5
    torch.testing.assert_close(values.entropy, torch.full((5,), 299.0, dtype=torch.float64).log())


def test_the_first_of_the_largest_is_found():
    generator = torch.Generator().manual_seed(0)
    for size in (64, 128, 200, 640):
        logits = torch.randint(0, 5, (50, size), generator=generator).float()
        best, place = head_module._largest(logits)
        assert torch.equal(best, logits.amax(-1, keepdim=True))
        assert torch.equal(place[:, 0], logits.argmax(-1))


@torch.inference_mode()
def test_a_bias_and_a_head_that_is_more_than_its_weights_count(block):
    head, states = head_and_states(20, 300, 1)
    head.bias = torch.nn.Parameter(torch.randn(300))
    wrapped = torch.nn.Sequential(head)
    wrapped.weight = head.weight
    values, expected = slot_values(Head(head), states, mask_id=7, eos_id=2), head(states)
    expected[:, 7] = float("-inf")
    assert torch.equal(values.token, expected.argmax(-1))
    for column, other in zip(values, slot_values(Head(wrapped), states, mask_id=7, eos_id=2), strict=True):
        torch.testing.assert_close(column, other, rtol=1e-5, atol=0)
