from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.training.data import draw_masks, draw_times, stream

SEEDS = st.integers(0, 2**31)


@given(SEEDS, st.integers(1, 200), st.sampled_from([1e-3, 0.1]))
def test_times_fill_every_stratum_once(seed, count, eps):
    times = draw_times(count, stream(seed), eps=eps)
    strata = ((times.double().sort().values - eps) / (1 - eps) * count).floor()
    assert times.min() >= eps and times.max() <= 1
    # A draw within rounding of a boundary may count for its neighbour.
    assert (strata - torch.arange(count)).abs().max() <= 1


def test_times_come_in_random_order():
    times = draw_times(64, stream(1), eps=1e-3)
    assert not torch.equal(times, times.sort().values)


@given(SEEDS, st.lists(st.integers(1, 30), min_size=1, max_size=20), st.floats(1e-3, 1))
def test_every_sequence_has_a_mask(seed, targets, time):
    targets = torch.tensor(targets)
    masked = draw_masks(torch.full((len(targets),), time), targets, stream(seed))
    assert masked.shape == (targets.sum(),)
    assert all(part.any() for part in masked.split(targets.tolist()))


def test_masks_follow_their_rate():
    targets = torch.full((3,), 20_000)
    shares = draw_masks(torch.tensor([0.1, 0.5, 1.0]), targets, stream(5)).view(3, -1).float().mean(1)
    assert shares.tolist() == pytest.approx([0.1, 0.5, 1.0], abs=0.01)


def test_the_forced_mask_is_uniform():
    targets = torch.full((4000,), 4)
    masked = draw_masks(torch.full((4000,), 1e-6), targets, stream(2)).view(-1, 4)
    assert (masked.sum(1) == 1).all()
    assert masked.float().mean(0).tolist() == pytest.approx([0.25] * 4, abs=0.03)


def test_all_mask_share():
    times = draw_times(4000, stream(3), eps=1e-3, all_mask_share=0.3)
    assert (times == 1).float().mean().item() == pytest.approx(0.3, abs=0.03)


def test_streams_depend_on_the_whole_key():
    draws = {torch.rand(1, generator=stream(*key)).item() for key in ((1, 2), (2, 1), (12,), (1, "canvas", 2))}
    assert len(draws) == 4
    assert torch.equal(torch.rand(3, generator=stream(1, 2)), torch.rand(3, generator=stream(1, 2)))
