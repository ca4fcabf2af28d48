from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.errors import InputError


@pytest.mark.parametrize(
    ("length", "steps", "counts"),
    [(7, 3, [3, 2, 2]), (3, 5, [1, 1, 1, 0, 0]), (4, 4, [1, 1, 1, 1]), (1, 1, [1]), (8, 1, [8]), (6, 3, [2, 2, 2])],
)
def test_worked_cases(length, steps, counts):
    assert reveal_counts(length, steps) == counts


@pytest.mark.parametrize(("length", "steps", "counts"), [(7, 3, [2, 2, 3]), (3, 5, [0, 1, 0, 1, 1]), (6, 3, [2, 2, 2])])
def test_floors_by_hand(length, steps, counts):
    assert reveal_counts(length, steps, "floors") == counts


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


def test_an_unknown_rule_names_the_known_ones():
    with pytest.raises(InputError, match="Name one of floors, llada"):
        reveal_counts(4, 2, "cosine")
