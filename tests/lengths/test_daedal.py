"""DAEDAL's first stage on hand-made probes."""

from __future__ import annotations

import math

import pytest
from readings import choose_canvases

from entropy_valley.decoding.requests import Reading
from entropy_valley.decoding.variable_length import eos_confidence
from entropy_valley.errors import InputError
from entropy_valley.lengths import Sentence, make_method


def canvas(length, eos, other=0.4):
    """Slots whose p(EOS) is as ``eos`` says by slot, else 0.01; the most probable token has at least ``other``."""
    chances = [eos.get(slot, 0.01) for slot in range(length)]
    best = tuple(math.log(max(chance, other)) for chance in chances)
    return Reading((0,) * length, (1.0,) * length, best, tuple(map(math.log, chances)))


def grow(selector, read, source_tokens=9, room=None):
    """The row of a sentence, and the lengths in the order of their probes."""
    lengths = []

    def probe(asked):
        lengths.extend(length for _, length in asked)
        return [read(length) for _, length in asked]

    (row,) = choose_canvases(selector, [Sentence(source_tokens, room=room)], probe)
    return row, lengths


def test_it_grows_by_eight_until_the_last_expecting_slot_is_sure_enough():
    # From ⌊1.0 · 9⌋ + 1 = 10 slots. At 18 the last of the two slots that expect the EOS has 0.45 (at the slot with 0.3
    # another token has 0.4); at 26 it has 0.6.
    table = {10: {}, 18: {5: 0.9, 16: 0.45, 17: 0.3}, 26: {20: 0.6}}
    row, lengths = grow(make_method("daedal", {"ratios": 1.0, "eos_window": 1}), lambda n: canvas(n, table[n]))
    assert lengths == [10, 18, 26]
    assert (row["length"], row["calls"], row["slots"]) == (26, 3, 54)
    assert row["candidates"] == [10, 18, 26]
    assert row["scores"] == pytest.approx([0, -0.45, -0.6])


def test_a_large_window_wants_many_slots():
    # 64 slots, E = 32: 17 slots with 0.9 are 15.3 / 32 = 0.48, too little; 18 are 16.2 / 32 = 0.51.
    selector = make_method("daedal", {"start": 64})
    sure = {64: 17, 72: 18}
    row, lengths = grow(selector, lambda n: canvas(n, {n - 1 - k: 0.9 for k in range(sure[n])}))
    assert lengths == [64, 72]
    assert row["scores"] == pytest.approx([-17 * 0.9 / 32, -18 * 0.9 / 32])


@pytest.mark.parametrize(
    ("cap", "room", "expected"), [(30, None, [10, 18, 26, 30]), (2048, 20, [10, 18, 20]), (99, 7, [7])]
)
def test_without_an_eos_it_ends_at_the_cap_or_where_the_context_does(cap, room, expected):
    row, lengths = grow(make_method("daedal", {"ratios": 1.0, "cap": cap}), lambda n: canvas(n, {}), room=room)
    assert lengths == expected
    assert row["length"] == expected[-1]


def test_the_last_canvas_is_taken_even_where_an_earlier_one_was_surer():
    table = {10: {9: 0.49}, 18: {}, 20: {}}
    row, _ = grow(make_method("daedal", {"ratios": 1.0, "eos_window": 1, "cap": 20}), lambda n: canvas(n, table[n]))
    assert row["length"] == 20 and row["scores"] == pytest.approx([-0.49, 0, 0])


def test_the_confidence_is_of_the_last_slots():
    assert eos_confidence([0.9, 0.5, 0.7], 2) == pytest.approx(0.6)
    assert eos_confidence([0.5], 2) == 0.25
    assert eos_confidence([], 2) == 0


@pytest.mark.parametrize("settings", [{}, {"ratios": 1.0, "start": 64}])
def test_it_starts_at_one_place(settings):
    with pytest.raises(InputError, match="either `ratios` or `start`"):
        make_method("daedal", settings)
