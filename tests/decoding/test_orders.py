"""The reveal orders on hand-made values, and what holds for all of them."""

import random

import numpy as np
import pytest
import torch
from bench import canvas_of
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.decoding.batch import Batch, Pass, Slots, lowest
from entropy_valley.decoding.head import SlotValues
from entropy_valley.decoding.orders import (
    ORDERS,
    SourceGuided,
    moments,
    needs_sourceless,
    reveal_counts,
    sourceless_steps,
)
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.translation.sentences import distractors

MASK = 99
SETTINGS = {"hybrid": {"p": 0.5}}
STEPWISE = {"sig": "stepwise_kl"}


@pytest.mark.parametrize(
    ("p", "steps", "by_entropy"), [(0.25, 8, 2), (0.5, 5, 2), (0.75, 1, 0), (0, 3, 0), (1, 3, 3), (0.29, 100, 29)]
)
def test_hybrid_looks_at_the_sig_in_its_later_steps_alone(p, steps, by_entropy):
    hybrid = make_denoiser("hybrid", {"p": p, **STEPWISE})
    assert [needs_sourceless(hybrid, step, steps) for step in range(steps)].count(False) == by_entropy
    assert sourceless_steps(hybrid, steps) == steps - by_entropy


@given(st.integers(1, 90), st.integers(1, 40))
def test_moments_are_the_steps_at_which_floors_reveals(length, steps):
    times = [step for step, count in enumerate(reveal_counts(length, steps, "floors")) if count]
    canvas = canvas_of([1], length, steps, budget=steps)
    columns = torch.arange(len(times)), torch.zeros(len(times))
    values = SlotValues(*columns * 2)
    seen = moments(Slots([canvas] * len(times), columns[0], columns[1], columns[0], values, columns[1]))
    assert seen.tolist() == pytest.approx([step / max(1, steps - 1) for step in times])


class TestDistractors:
    SOURCES = ("a b c d e", "one", "f g h i", "j k l m n o", "one", "p q r s t u v", "f g h i j")

    def test_one_within_a_fifth_of_the_words_is_drawn_by_the_place(self):
        places = distractors(self.SOURCES)
        for place, text in enumerate(self.SOURCES):
            words = len(text.split())
            low, high = int(words * (1 - 0.2)), int(words * (1 + 0.2))
            others = [s for s in self.SOURCES if low <= len(s.split()) <= high and s != text]
            others = others or [s for s in self.SOURCES if s != text]
            assert self.SOURCES[places[place]] == random.Random(place).choice(others)
        assert places[0] in (2, 3, 6) and places[5] in (0, 3, 6)  # four to six words; five to eight

    def test_without_any_other_source_it_is_the_source_itself(self):
        assert distractors(["one", "one"]) == [0, 1] and distractors([]) == []


CANVAS = st.builds(
    lambda prompt, length, steps: canvas_of(prompt, length, steps, sourceless=[0], sigs=[0.5] * length, budget=steps),
    prompt=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    length=st.integers(1, 9),
    steps=st.integers(1, 12),
)


@given(st.lists(CANVAS, min_size=1, max_size=5), st.sampled_from(sorted(ORDERS)), st.integers(0, 99), st.booleans())
def test_every_slot_is_revealed_once_and_as_many_a_step_as_the_schedule_says(canvases, name, seed, stepwise):
    more = STEPWISE if stepwise and issubclass(ORDERS[name], SourceGuided) else {}
    order, batch = make_denoiser(name, SETTINGS.get(name, {}) | more), Batch.of(list(enumerate(canvases)), MASK)
    generator, step, filled = torch.Generator().manual_seed(seed), 0, {}
    while batch:
        masked = batch.masked()
        numbers = torch.rand(3, len(masked), generator=generator, dtype=torch.float64)
        values = SlotValues(torch.full((len(masked),), step), *numbers)  # a token is the step that reveals it
        batch, done, _ = batch.step(Pass(masked, values, np.zeros((2, len(batch))), numbers[0]), order, -1)
        filled |= dict(done)
        step += 1
    for place, canvas in enumerate(canvases):
        steps = filled[place].tokens
        assert [steps.count(number) for number in range(len(canvas.counts))] == canvas.counts
        assert filled[place].passes == len(canvas.counts)
        assert name != "left_to_right" or steps == sorted(steps)


@given(st.integers(1, 500), st.integers(1, 200))
def test_floors_reveal_as_many_slots_in_as_many_steps(length, steps):
    ours, theirs = reveal_counts(length, steps), reveal_counts(length, steps, "floors")
    assert sorted(ours) == sorted(theirs)
    assert theirs == [int(length * (t + 1) / steps) - int(length * t / steps) for t in range(steps)]


@given(st.integers(1, 500), st.integers(1, 200))
def test_every_slot_is_revealed_once_and_early_steps_take_the_rest(length, steps):
    counts = reveal_counts(length, steps)
    assert len(counts) == steps and sum(counts) == length
    assert counts == sorted(counts, reverse=True) and counts[0] - counts[-1] <= 1
    assert sum(count > 0 for count in counts) == min(length, steps)


SCORED = st.lists(
    st.lists(st.sampled_from([-0.0, 0.0, 0.25, 0.5, 1.0, 2.0]), min_size=1, max_size=9).flatmap(
        lambda scores: st.tuples(st.just(scores), st.integers(0, len(scores)))
    ),
    min_size=1,
    max_size=6,
)


@given(SCORED)
def test_the_lowest_of_each_canvas_ties_to_the_lower_position(canvases):
    expected, start = set(), 0
    for scores, count in canvases:
        best = sorted(range(len(scores)), key=lambda place: (scores[place], place))[:count]
        expected |= {start + place for place in best}
        start += len(scores)
    scores = np.array([score for canvas, _ in canvases for score in canvas])
    canvas = np.repeat(np.arange(len(canvases)), [len(scores) for scores, _ in canvases])
    chosen = lowest(scores, canvas, np.array([count for _, count in canvases]))
    assert set(chosen.tolist()) == expected and len(chosen) == len(expected)
