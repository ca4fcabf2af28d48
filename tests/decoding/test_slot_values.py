from __future__ import annotations

import pytest
import torch

from entropy_valley.decoding import entropy
from entropy_valley.decoding.entropy import slot_values


def head_and_states(rows, vocabulary, scale, seed=0):
    generator = torch.Generator().manual_seed(seed)
    head = torch.nn.Linear(16, vocabulary, bias=False)
    head.weight.data = torch.randn(vocabulary, 16, generator=generator) * scale
    return head, torch.randn(rows, 16, generator=generator)


@pytest.mark.parametrize("scale", [0.01, 1, 5, 30])
@torch.inference_mode()
def test_they_are_those_of_a_float64_softmax_without_the_mask_token(scale):
    head, states = head_and_states(50, 300, scale)
    logits = head(states).double()
    logits[:, 7] = float("-inf")
    probability = logits.softmax(-1)
    values = slot_values(head, states, mask_id=7)
    assert torch.equal(values.token, probability.argmax(-1))
    torch.testing.assert_close(values.entropy, torch.special.entr(probability).sum(-1), rtol=2e-5, atol=1e-12)
    torch.testing.assert_close(values.logprob.exp(), probability.max(-1).values, rtol=1e-6, atol=0)


@torch.inference_mode()
def test_nearly_certain_slots_keep_their_order():
    head = torch.nn.Linear(1, 5, bias=False)
    head.weight.data = torch.tensor([[1.0], [0.0], [0.0], [0.0], [0.0]])
    gaps = torch.tensor([[22.0], [21.9], [18.0], [17.9]])  # 1 + e^-22 is 1 in float32
    values = slot_values(head, gaps, mask_id=4).entropy
    assert torch.equal(values.argsort(), torch.arange(4))
    assert (values.diff() > 0).all()


@torch.inference_mode()
def test_the_mask_token_is_never_revealed():
    head, states = head_and_states(64, 20, 1)
    head.weight.data[3] *= 50
    assert (head(states).argmax(-1) == 3).any()
    assert (slot_values(head, states, mask_id=3).token != 3).all()


@torch.inference_mode()
def test_neither_chunks_nor_neighbours_change_a_row(monkeypatch):
    head, states = head_and_states(300, 500, 2)
    whole = slot_values(head, states, mask_id=0)
    monkeypatch.setitem(entropy._CHUNK, "cpu", 1)
    chunked = slot_values(head, states, mask_id=0)
    alone = [slot_values(head, states[row : row + 1], mask_id=0) for row in (0, 150, 299)]
    for column in range(3):
        assert torch.equal(whole[column], chunked[column])
        assert torch.equal(whole[column][[0, 150, 299]], torch.cat([values[column] for values in alone]))
