"""Length methods after other papers, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readings import choose_canvases, flat, search

from entropy_valley.decoding.canvas import ProbeResult
from entropy_valley.errors import InputError
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.base import candidate_length


def crop(*chances):
    """The choice on one generous canvas whose slots have these p(EOS)."""
    slots = len(chances)
    logs = tuple(map(math.log, chances))
    probes = {slots: ProbeResult((0,) * slots, (1.0,) * slots, (-1.0,) * slots, logs)}
    return make_method("smartcrop_style", {"ratios": [0.5, 1.0]}).choose(Sentence(6), probes)


class TestSmartCropStyle:
    def test_it_probes_one_generous_canvas(self):
        length_method = make_method("smartcrop_style", {"ratios": [0.9, 0.7]})
        row, rounds = search(length_method, 20)
        assert rounds == [[28]]  # ⌊1.5 · 0.9 · 20⌋ + 1
        assert (row["calls"], row["slots"], row["scores"]) == (1, 28, [])
        assert row["candidates"] == [row["length"]]

    @given(st.permutations(range(1, 32)))
    def test_the_quantile_is_numpys(self, places):
        chances = [place / 100 for place in places]
        reaching = [chance >= np.quantile(chances, 0.9) for chance in chances]
        assert crop(*chances).length == max(2, reaching.index(True) + 1)


def lr_choice(probes, **settings):
    return make_method("lr_style", {"ratios": [1.0], **settings}).choose(Sentence(4), probes)


class TestLengthRegularisedStyle:
    def test_what_lies_farthest_above_the_line_wins(self):
        # mean log max-p at L = 2, 4, 8 is -1, -1, -3. Over log L = l, 2l, 3l the slope is -1/l, so k = 1/l, and
        # s = -1 + 1, -1 + 2, -3 + 3: the middle one.
        probes = {length: flat(length, confidence=math.exp(-loss)) for length, loss in ((2, 1), (4, 1), (8, 3))}
        choice = lr_choice(probes)
        assert choice.length == 4
        assert choice.scores == {2: 0.0, 4: -1.0, 8: 0.0}

    @given(st.floats(-3, 3), st.lists(st.floats(0.01, 1.0), min_size=3, max_size=6))
    def test_a_trend_in_log_length_changes_no_choice(self, slope, confidences):
        plain = {length: math.log(value) for length, value in enumerate(confidences, 3)}
        tilted = {length: value + slope * math.log(length) for length, value in plain.items()}
        scores, others = (
            lr_choice({length: ProbeResult((0,), (0.0,), (value,), (0.0,)) for length, value in table.items()}).scores
            for table in ({n: v * n for n, v in plain.items()}, {n: v * n for n, v in tilted.items()})
        )  # one slot stands for the sum: the length_method divides it by the length
        assert others == pytest.approx(scores, abs=2e-6)


def canvas(length, eos, other=0.4):
    """Slots whose p(EOS) is as ``eos`` says by slot, else 0.01; the most probable token has at least ``other``."""
    chances = [eos.get(slot, 0.01) for slot in range(length)]
    best = tuple(math.log(max(chance, other)) for chance in chances)
    return ProbeResult((0,) * length, (1.0,) * length, best, tuple(map(math.log, chances)))


def grow(length_method, read, source_tokens=9, room=None):
    """The row of a sentence, and the lengths in the order of their probes."""
    lengths = []

    def probe(asked):
        lengths.extend(length for _, length in asked)
        return [read(length) for _, length in asked]

    (row,) = choose_canvases(length_method, [Sentence(source_tokens, room=room)], probe)
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


@pytest.mark.parametrize(
    ("cap", "room", "expected"), [(30, None, [10, 18, 26, 30]), (2048, 20, [10, 18, 20]), (99, 7, [7])]
)
def test_without_an_eos_it_ends_at_the_cap_or_where_the_context_does(cap, room, expected):
    row, lengths = grow(make_method("daedal", {"ratios": 1.0, "cap": cap}), lambda n: canvas(n, {}), room=room)
    assert lengths == expected
    assert row["length"] == expected[-1]


@pytest.mark.parametrize("settings", [{}, {"ratios": 1.0, "start": 64}])
def test_it_starts_at_one_place(settings):
    with pytest.raises(InputError, match="either `ratios` or `start`"):
        make_method("daedal", settings)


RATIOS = [0.8, 1.0, 1.1]  # for 20 tokens 17, 21, 23 slots; a step below is 0.2, one above 0.1


def adaptive(source_tokens, valley, ratios=RATIOS, **settings):
    length_method = make_method("adaptive_ev", {"ratios": ratios, **settings})
    return search(length_method, source_tokens, entropy=lambda length: float(abs(length - valley)))


def test_the_window_follows_the_valley_by_that_sides_step():
    row, rounds = adaptive(20, 14)
    assert rounds == [[17, 21, 23], [13], [9]]  # 0.6, then 0.4, where the entropy rises again
    assert (row["length"], row["calls"]) == (13, 5)
    row, rounds = adaptive(20, 26)
    assert rounds == [[17, 21, 23], [25], [27]]  # 1.2, then 1.3: as far from 26, and the shorter one wins
    assert row["length"] == 25


def test_three_steps_a_side_are_the_most():
    row, rounds = adaptive(20, 99)
    assert [length for lengths in rounds[1:] for length in lengths] == [25, 27, 29]
    assert row["length"] == 29
    assert adaptive(20, 99, extensions=1)[0]["length"] == 25
    assert adaptive(20, 99, extensions=0)[0]["length"] == 23


def test_a_ratio_never_falls_to_nothing():
    _, rounds = adaptive(20, 2, ratios=[0.2, 0.3])
    assert rounds == [[5, 7], [3]]  # 0.1; a ratio of 0 is none


grids = st.lists(st.integers(10, 300), min_size=1, max_size=6, unique=True).map(lambda n: [ratio / 100 for ratio in n])


@given(grids, st.integers(0, 80), st.lists(st.integers(0, 9), min_size=7, max_size=7))
def test_the_choice_is_the_lowest_probe_and_extra_probes_are_few(ratios, source_tokens, entropies):
    length_method = make_method("adaptive_ev", {"ratios": ratios})
    row, rounds = search(length_method, source_tokens, entropy=lambda length: float(entropies[length % 7]))
    window = {candidate_length(ratio, source_tokens) for ratio in ratios}
    assert rounds[0] == sorted(window)
    assert row["calls"] == len(row["candidates"]) <= len(window) + 6
    assert (min(row["scores"]), row["length"]) == min(zip(row["scores"], row["candidates"], strict=True))
    ev, _ = search(make_method("ev", {"ratios": ratios}), source_tokens, lambda length: float(entropies[length % 7]))
    assert min(row["scores"]) <= min(ev["scores"])
