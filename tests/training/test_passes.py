from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_training import canvases_of

from entropy_valley.training.loss import Passes, cross_entropies

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=40).map(lambda found: torch.tensor(sorted(found)))
PADDINGS = st.sampled_from([0, 3, "batch"])


def costs(lengths, sizes, padding):
    """The tokens of each part, as they run."""
    for part in lengths.split(sizes):
        yield int((part.max().expand(len(part)) if padding == "batch" else part + padding).sum()) if len(part) else 0


def fits(lengths, sizes, limit, padding):
    return all(size <= 1 or cost <= limit for size, cost in zip(sizes, costs(lengths, sizes, padding), strict=True))


@given(LENGTHS, st.integers(1, 200), st.integers(1, 4), PADDINGS)
def test_parts_hold_the_budget_and_each_sequence_once(lengths, tokens, ranks, padding):
    sizes = Passes(tokens, ranks).sizes(lengths, padding)
    assert sum(sizes) == len(lengths) and len(sizes) % ranks == 0
    assert fits(lengths, sizes, tokens, padding)
    assert sizes == sorted(sizes, reverse=True)  # what is empty comes last


@given(LENGTHS.filter(lambda lengths: len(lengths) < 9), st.integers(1, 120), st.integers(1, 3), PADDINGS)
def test_no_cut_has_fewer_rounds_or_a_smaller_largest_part(lengths, tokens, ranks, padding):
    sizes = Passes(tokens, ranks).sizes(lengths, padding)
    largest = max(costs(lengths, sizes, padding))
    for cuts in range(len(sizes)):
        for places in itertools.combinations(range(1, len(lengths)), cuts):
            other = [end - start for start, end in itertools.pairwise([0, *places, len(lengths)])]
            if fits(lengths, other, tokens, padding):
                assert -(-len(other) // ranks) == len(sizes) // ranks
                assert max(costs(lengths, other, padding)) >= largest


@pytest.mark.parametrize("padding", [0, 2])
@torch.inference_mode()
def test_the_loss_is_the_same_for_any_budget(load, padding):
    backbone = load()
    losses, counts = [], []
    for passes in (Passes(), Passes(1), Passes(30), Passes(60), Passes(60, ranks=2)):
        parts = canvases_of(backbone, passes=passes, eos_padding=padding)[0]
        counts.append(len(parts))
        shares = (cross_entropies(backbone.model, part, False) @ part.weights for part in parts if len(part))
        losses.append(sum(shares).item())
    assert counts[:2] == [1, 8] and len(set(counts)) >= 4  # 4 of them with an empty one
    assert losses == pytest.approx([losses[0]] * 5, rel=1e-5)
