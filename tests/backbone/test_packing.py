"""Fully bidirectional inside a sequence, nothing between sequences, no padding."""

from __future__ import annotations

import random

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy_valley.backbone.loading import load_backbone, new_model
from entropy_valley.backbone.packing import hidden_states, pack

MODEL = new_model("dream", vocabulary=40, width=32, layers=2, heads=4, kv_heads=2, ffn=48, context=64, seed=1).eval()
SEQUENCES = st.lists(st.lists(st.integers(0, 39), min_size=1, max_size=12), min_size=1, max_size=6)


def states(model, sequences):
    with torch.inference_mode():
        packed = pack(sequences)
        return hidden_states(model, packed).split(packed.lengths)


def stock(model, sequence):
    """The stock forward under its own eager attention, with an explicit all-zero mask."""
    plain = type(model)._from_config(model.config, attn_implementation="eager")
    plain.load_state_dict(model.state_dict())
    with torch.inference_mode():
        mask = torch.zeros(1, 1, len(sequence), len(sequence))
        return plain.eval().model(input_ids=torch.tensor([sequence]), attention_mask=mask).last_hidden_state[0]


def test_a_packed_sequence_is_what_the_stock_model_computes(made, family):
    model, sequences = made[family.name][0], [[1, 2, 3, 4], [5, 6], [7, 8]]
    for packed, sequence in zip(states(model, sequences), sequences, strict=True):
        torch.testing.assert_close(packed, stock(model, sequence), atol=1e-5, rtol=0)


@settings(max_examples=40, deadline=None)
@given(SEQUENCES, st.randoms(use_true_random=False))
def test_company_and_order_change_nothing(sequences, shuffler: random.Random):
    order = list(range(len(sequences)))
    shuffler.shuffle(order)
    together = states(MODEL, [sequences[place] for place in order])
    for place, packed in zip(order, together, strict=True):
        torch.testing.assert_close(packed, states(MODEL, [sequences[place]])[0], atol=1e-5, rtol=0)


def test_a_later_token_changes_an_earlier_state(made, family):
    backbone = load_backbone(made[family.name][1], family.name)
    (before,), (after,) = (states(backbone.model, [[3, 4, last]]) for last in (5, 6))
    assert not torch.equal(before[0], after[0])


def test_positions_restart_in_each_sequence():
    packed = pack([[1, 2, 3], [4, 5]])
    assert packed.position_ids.tolist() == [[0, 1, 2, 0, 1]]
    assert packed.offsets == (0, 3)


def test_gradients_are_those_of_the_sequences_apart():
    sequences = [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10]]

    def gradient(batches):
        MODEL.zero_grad()
        for batch in batches:
            hidden_states(MODEL, pack(batch)).square().sum().backward()
        return MODEL.model.layers[0].self_attn.q_proj.weight.grad.clone()

    torch.testing.assert_close(gradient([sequences]), gradient([[one] for one in sequences]), atol=1e-4, rtol=1e-5)
