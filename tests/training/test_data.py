"""Training data: pairs, their order in training, and which slots are masked."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_training import canvases_of

from entropy_valley.training.loss import Batches, Passes, draw_groups, draw_masks, draw_times, stream

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=60).map(torch.tensor)


@given(LENGTHS, st.integers(1, 16), st.integers(0, 99), st.booleans())
def test_every_pair_once_per_epoch(lengths, batch, seed, alike):
    order = Batches(lengths, batch, seed, alike)
    for epoch in range(2):
        batches = [order[epoch * len(order) + number] for number in range(len(order))]
        assert sorted(torch.cat(batches).tolist()) == list(range(len(lengths)))
        assert all(torch.equal(lengths[one], lengths[one].sort().values) for one in batches)
        assert max(map(len, batches)) <= batch


@given(st.lists(st.tuples(*[st.integers(1, 50)] * 2), min_size=1), st.integers(1, 16), st.integers(0, 99))
def test_the_same_pairs_under_another_tokenizer_are_in_the_same_batches(lengths, batch, seed):
    one, other = (Batches(torch.tensor(each), batch, seed) for each in zip(*lengths, strict=True))
    for step in range(2 * len(one)):
        assert sorted(one[step].tolist()) == sorted(other[step].tolist())


@given(LENGTHS, st.integers(1, 16), st.integers(0, 99))
def test_a_batch_needs_none_before_it(lengths, batch, seed):
    steps = range(3 * len(Batches(lengths, batch, seed)))
    forth, back = Batches(lengths, batch, seed), Batches(lengths, batch, seed)
    batches = {step: forth[step] for step in steps}
    assert all(torch.equal(batches[step], back[step]) for step in reversed(steps))


def test_alike_batches_hold_one_length_each_and_epochs_and_seeds_differ():
    order = Batches(torch.arange(64) % 4, 8, 0, alike=True)
    assert all(len((order[step] % 4).unique()) == 1 for step in range(len(order)))
    one, other = Batches(torch.ones(50), 50, 1), Batches(torch.ones(50), 50, 2)
    assert len({tuple(batch.tolist()) for batch in (one[0], one[1], other[0])}) == 3


@pytest.mark.parametrize("padding", [0, 3, "batch"])
def test_eos_padding(load, padding):
    """However the batch is cut into passes."""
    backbone = load()
    canvases = canvases_of(backbone, passes=Passes(40, ranks=2), eos_padding=padding)
    indices, groups = canvases.order[0], draw_groups(8, 4, 1, "groups", 0)
    layout, _ = canvases._layout(indices, groups)
    extra = layout.lengths - canvases.pairs.lengths[indices]
    for number, part in enumerate(layout.tokens.split(layout.lengths.tolist())):
        assert (part == backbone.eos_id).sum() == 1 + extra[number]
        assert (part[-1 - int(extra[number]) :] == backbone.eos_id).all()
    assert layout.targets.sum() == layout.is_target.sum() == (layout.lengths - layout.prompts).sum()
    if padding == "batch":
        assert all(layout.lengths[groups == group].unique().numel() == 1 for group in (0, 1))
    else:
        assert (extra == padding).all()


def test_one_rate_for_each_micro_batch(load):
    canvases, groups = canvases_of(load(), time="minibatch"), draw_groups(8, 4, 1, "groups", 0)
    times = canvases._times(groups, stream(1))
    assert all(times[groups == group].unique().numel() == 1 for group in (0, 1))
    assert times.unique().numel() == 2


SEEDS = st.integers(0, 2**31)


@given(SEEDS, st.integers(1, 200), st.sampled_from([1e-3, 0.1]))
def test_times_fill_every_stratum_once(seed, count, eps):
    times = draw_times(count, stream(seed), eps=eps)
    strata = ((times.double().sort().values - eps) / (1 - eps) * count).floor()
    assert times.min() >= eps and times.max() <= 1
    # A draw within rounding of a boundary may count for its neighbour.
    assert (strata - torch.arange(count)).abs().max() <= 1
    assert count < 20 or not torch.equal(times, times.sort().values)


@given(SEEDS, st.lists(st.integers(1, 30), min_size=1, max_size=20), st.floats(1e-3, 1))
def test_every_sequence_has_a_mask(seed, targets, time):
    targets = torch.tensor(targets)
    masked = draw_masks(torch.full((len(targets),), time), targets, stream(seed))
    assert masked.shape == (targets.sum(),)
    assert all(part.any() for part in masked.split(targets.tolist()))


def test_the_forced_mask_is_uniform():
    targets = torch.full((4000,), 4)
    masked = draw_masks(torch.full((4000,), 1e-6), targets, stream(2)).view(-1, 4)
    assert (masked.sum(1) == 1).all()
    assert masked.float().mean(0).tolist() == pytest.approx([0.25] * 4, abs=0.03)
