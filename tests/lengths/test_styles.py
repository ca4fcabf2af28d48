"""The selectors after published ones whose formulas are not public, or not for one EOS."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readings import flat, search

from entropy_valley.decoding.requests import Reading
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.published import quantile


def crop(*chances):
    """The choice on one generous canvas whose slots have these p(EOS)."""
    slots = len(chances)
    logs = tuple(map(math.log, chances))
    probes = {slots: Reading((0,) * slots, (1.0,) * slots, (-1.0,) * slots, logs)}
    return make_method("smartcrop_style", {"ratios": [0.5, 1.0]}).choose(Sentence(6), probes)


class TestSmartCropStyle:
    def test_it_probes_one_generous_canvas(self):
        selector = make_method("smartcrop_style", {"ratios": [0.9, 0.7]})
        row, rounds = search(selector, 20)
        assert rounds == [[28]]  # ⌊1.5 · 0.9 · 20⌋ + 1
        assert (row["calls"], row["slots"], row["scores"]) == (1, 28, [])
        assert row["candidates"] == [row["length"]]

    def test_the_canvas_ends_at_the_first_slot_that_reaches_the_quantile(self):
        # 11 slots: the 0.9 quantile is the 10th of the sorted values, 0.4; the first slot that has it is the 7th.
        chances = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.4, 0.2, 0.5, 0.1, 0.1]
        assert crop(*chances).length == 7

    def test_the_quantile_lies_between_slots(self):
        # 6 slots: place 4.5, half-way from 0.2 to 0.6: only the 0.6 reaches 0.4.
        assert crop(0.1, 0.1, 0.2, 0.1, 0.6, 0.1).length == 5

    def test_a_slot_of_content_is_kept(self):
        assert crop(0.9, 0.1, 0.1, 0.1).length == 2
        assert crop(0.1, 0.1, 0.1).length == 2  # no slot expects the EOS more than another

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0, 1))
    def test_the_quantile_is_numpys_and_some_value_reaches_it(self, values, share):
        assert quantile(values, share) == pytest.approx(np.quantile(values, share))
        assert max(values) >= quantile(values, share)


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

    def test_the_mean_is_over_all_slots(self):
        probes = {2: Reading((0,) * 2, (1.0,) * 2, (-1.0, -4.0), (-9.0,) * 2)}
        assert lr_choice(probes).scores == {2: 2.5}  # one candidate: no slope

    def test_two_candidates_are_a_tie(self):
        assert lr_choice({6: flat(6, confidence=0.9), 4: flat(4, confidence=0.1)}).length == 4

    @given(st.floats(-3, 3), st.lists(st.floats(0.01, 1.0), min_size=3, max_size=6))
    def test_a_trend_in_log_length_changes_no_choice(self, slope, confidences):
        plain = {length: math.log(value) for length, value in enumerate(confidences, 3)}
        tilted = {length: value + slope * math.log(length) for length, value in plain.items()}
        scores, others = (
            lr_choice({length: Reading((0,), (0.0,), (value,), (0.0,)) for length, value in table.items()}).scores
            for table in ({n: v * n for n, v in plain.items()}, {n: v * n for n, v in tilted.items()})
        )  # one slot stands for the sum: the selector divides it by the length
        assert others == pytest.approx(scores, abs=2e-6)

    def test_it_probes_evs_grid(self):
        assert sorted(make_method("lr_style", {"ratios": [0.5, 1.0]}).propose(Sentence(4), {})) == [3, 5]
