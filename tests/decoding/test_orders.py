"""The reveal orders on hand-made values, and what holds for all of them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.decoding.orders import ORDERS, make_order
from entropy_valley.decoding.schedule import reveal_counts
from entropy_valley.engine.batch import Batch, Pass
from entropy_valley.engine.entropy import SlotValues
from entropy_valley.engine.order import Slots, needs_sourceless, sourceless_steps
from entropy_valley.engine.queue import Canvas
from entropy_valley.errors import InputError

MASK = 99
SETTINGS = {"hybrid": {"p": 0.5}}
# Two canvases of four slots, one of which is revealed already, and of two.
CANVASES = [Canvas([5, 6], 4, [1] * 4), Canvas([7], 2, [1] * 2)]
ENTROPY, SIG = [0.0, math.log(4), 1.0, 0.5, 0.2], [1.0, 2.0, 0.1, 0.3, 0.4]


def slots(steps=(1, 0), sig=SIG):
    tensor = torch.tensor(ENTROPY, dtype=torch.float64)
    return Slots(
        CANVASES,
        torch.tensor([0, 0, 0, 1, 1]),
        torch.tensor([0, 2, 3, 0, 1]),
        torch.tensor(steps),
        SlotValues(torch.zeros(5, dtype=torch.int64), tensor, -tensor, -tensor),
        None if sig is None else torch.tensor(sig, dtype=torch.float64),
    )


def ranked(scores):
    """Slots of each canvas, the first to be revealed first."""
    return scores[:3].argsort(stable=True).tolist(), scores[3:].argsort(stable=True).tolist()


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("med", ([0, 2, 1], [1, 0])),
        ("left_to_right", ([0, 1, 2], [0, 1])),
        ("sig_first", ([1, 0, 2], [1, 0])),
        ("reverse_sig", ([2, 0, 1], [0, 1])),
        # 1 · e^0 = 1, 2 · e^-log 4 = 0.5, 0.1 · e^-1 = 0.04; 0.3 · e^-0.5 = 0.18, 0.4 · e^-0.2 = 0.33
        ("entropy_weighted_sig", ([0, 1, 2], [1, 0])),
    ],
)
def test_by_hand(order, expected):
    assert ranked(make_order(order).scores(slots())) == expected


def test_hybrid_goes_over_to_sig_after_its_share_of_the_steps():
    """Half of four steps and half of two: steps 0 and 1 of the first canvas and step 0 of the second are MED's."""
    by_entropy, by_sig = ranked(make_order("med").scores(slots())), ranked(make_order("sig_first").scores(slots()))
    hybrid = make_order("hybrid", {"p": 0.5})
    assert ranked(hybrid.scores(slots((1, 0), None))) == by_entropy
    assert ranked(hybrid.scores(slots((1, 1)))) == (by_entropy[0], by_sig[1])
    assert ranked(hybrid.scores(slots((2, 0)))) == (by_sig[0], by_entropy[1])


@pytest.mark.parametrize(
    ("p", "steps", "by_entropy"), [(0.25, 8, 2), (0.5, 5, 2), (0.75, 1, 0), (0, 3, 0), (1, 3, 3), (0.29, 100, 29)]
)
def test_hybrid_looks_at_the_sig_in_its_later_steps_alone(p, steps, by_entropy):
    hybrid = make_order("hybrid", {"p": p})
    assert [needs_sourceless(hybrid, step, steps) for step in range(steps)].count(False) == by_entropy
    assert sourceless_steps(hybrid, steps, steps) == steps - by_entropy


@pytest.mark.parametrize("p", [-0.1, 1.5, "half", float("nan")])
def test_hybrid_takes_a_share(p):
    with pytest.raises(InputError, match="p: Input should be"):
        make_order("hybrid", {"p": p})


def test_only_the_source_guided_orders_look_at_the_sig():
    guided = {name for name in ORDERS if needs_sourceless(make_order(name, SETTINGS.get(name)), 9, 10)}
    assert guided == {"sig_first", "reverse_sig", "entropy_weighted_sig", "hybrid"}


CANVAS = st.builds(
    lambda prompt, length, steps, sourceless: Canvas(
        prompt, length, [count for count in reveal_counts(length, steps) if count], sourceless=sourceless
    ),
    prompt=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    length=st.integers(1, 9),
    steps=st.integers(1, 12),
    sourceless=st.just([0]),
)


@given(st.lists(CANVAS, min_size=1, max_size=5), st.sampled_from(sorted(ORDERS)), st.integers(0, 99))
def test_every_slot_is_revealed_once_and_as_many_a_step_as_the_schedule_says(canvases, name, seed):
    order, batch = make_order(name, SETTINGS.get(name)), Batch.of(list(enumerate(canvases)), MASK)
    generator, step, seen = torch.Generator().manual_seed(seed), 0, [[] for _ in canvases]
    while batch:
        before, masked, names = batch.ids.copy(), batch.masked(), batch.names
        numbers = torch.rand(3, len(masked), generator=generator, dtype=torch.float64)
        values = SlotValues(torch.full((len(masked),), step), *numbers)
        batch, _ = batch.advance(Pass(masked, values, numbers[0]), order)
        changed = (batch.ids != before).nonzero()[0]
        assert (before[changed] == MASK).all() and (batch.ids[changed] == step).all()
        for place, slot in zip(batch.canvas[changed].tolist(), batch.slot[changed].tolist(), strict=True):
            seen[names[place]].append(slot)
        step += 1
        assert all(len(seen[name]) == sum(canvases[name].counts[:step]) for name in names)
        batch, _ = batch.release(eos_id=-1)
    assert [sorted(slots) for slots in seen] == [list(range(canvas.length)) for canvas in canvases]
    if name == "left_to_right":
        assert all(slots == sorted(slots) for slots in seen)


def random_scores(canvases, seed=1):
    """The scores of each canvas, all slots masked."""
    lengths = torch.tensor([canvas.length for canvas in canvases])
    canvas = torch.arange(len(canvases)).repeat_interleave(lengths)
    position = torch.cat([torch.arange(length) for length in lengths])
    values = SlotValues(position, *torch.zeros(3, len(position), dtype=torch.float64))
    scores = make_order("random", {"seed": seed}).scores(
        Slots(canvases, canvas, position, torch.zeros(len(canvases)), values)
    )
    return [part.tolist() for part in scores.split(lengths.tolist())]


@given(st.lists(CANVAS, min_size=1, max_size=5), st.integers(0, 9))
def test_random_depends_on_seed_and_canvas_alone(canvases, seed):
    together = random_scores(canvases, seed)
    assert together == [random_scores([canvas], seed)[0] for canvas in canvases]
    assert random_scores(canvases[::-1], seed) == together[::-1]


def test_random_differs_from_seed_to_seed_and_from_sentence_to_sentence():
    one, other = Canvas([1, 2], 9, [1] * 9), Canvas([1, 3], 9, [1] * 9)
    draws = [*random_scores([one, other], 1), *random_scores([one, other], 2)]
    assert len({tuple(draw) for draw in draws}) == 4
    assert all(len(set(draw)) == 9 for draw in draws)
