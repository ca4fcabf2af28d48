"""The selectors that are fitted to a backbone: their searches and scores under statistics made by hand."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readings import LINE, STATISTICS, flat, search

from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.statistics import LengthStatistics


def cal(source_tokens, confidence, bias=(0.0, 0.0, 0.0, 0.0, 1.0), **settings):
    statistics = dataclasses.replace(STATISTICS, bias=bias)
    length_method = make_method("cal", {"ratios": 1.0, **settings}, statistics)
    return search(length_method, source_tokens, confidence=lambda length: confidence.get(length, 0.1))


class TestCal:
    def test_up_then_down_until_patience_ends(self):
        # From 10 up: 11 is better, 12 and 13 are not; down from 10: 9 and 8 are no better than 11.
        row, rounds = cal(9, {10: 0.5, 11: 0.6, 12: 0.5, 13: 0.5, 9: 0.5, 8: 0.5, 7: 0.9})
        assert rounds == [[10], [11], [12], [13], [9], [8]]
        assert (row["length"], row["calls"], row["slots"]) == (11, 6, 63)
        assert row["candidates"] == [8, 9, 10, 11, 12, 13]
        assert row["scores"] == [-0.5, -0.5, -0.5, -0.6, -0.5, -0.5]

    def test_more_patience_crosses_a_dip(self):
        table = {10: 0.5, 11: 0.4, 12: 0.4, 13: 0.7}
        assert cal(9, table)[0]["length"] == 10
        row, rounds = cal(9, table, patience=3)
        assert row["length"] == 13
        assert rounds == [[10], [11], [12], [13], [14], [15], [16], [9], [8], [7]]

    def test_confidence_is_divided_by_the_bias_of_its_length(self):
        # B(L) = 2^-L: 0.5 at 10 is Φ = 512, 0.3 at 11 is 614.4, 0.14 at 12 is 573.44.
        row, _ = cal(9, {10: 0.5, 11: 0.3, 12: 0.14, 13: 0.01}, bias=(1.0, 0.6931471805599453, 0.0, 0.0, 0.0))
        assert row["length"] == 11
        assert row["scores"][row["candidates"].index(11)] == pytest.approx(-614.4)

    @given(st.dictionaries(st.integers(2, 60), st.sampled_from([0.2, 0.4, 0.6, 0.8])), st.integers(0, 40))
    def test_it_probes_one_by_one_within_reach_and_takes_the_best(self, table, source_tokens):
        row, rounds = cal(source_tokens, table, reach=6)
        start = rounds[0][0]
        assert all(len(lengths) == 1 for lengths in rounds)
        assert all(length >= 2 and abs(length - start) <= 6 for length in row["candidates"])
        assert row["candidates"] == list(range(row["candidates"][0], row["candidates"][-1] + 1))
        assert row["scores"][row["candidates"].index(row["length"])] == min(row["scores"])


class TestCalibratedEv:
    def test_entropy_is_divided_by_what_is_usual_there(self):
        # Ē is 1, 2, 4 at 3, 4, 5 slots: 0.9/1, 1.6/2 and 3.4/4.
        length_method = make_method("ev_calibrated", {"ratios": [0.5, 0.75, 1.0]}, STATISTICS)
        row, rounds = search(length_method, 4, entropy={3: 0.9, 4: 1.6, 5: 3.4}.__getitem__)
        assert rounds == [[3, 4, 5]]
        assert (row["length"], row["scores"]) == (4, [0.9, 0.8, 0.85])

    def test_beyond_its_ends_the_curve_stays(self):
        assert [STATISTICS.expected_entropy(length) for length in (1, 2, 3, 6, 7, 99)] == [1.0, 1.0, 1.0, 4.0, 4.0, 4.0]

    def test_a_model_without_doubt_divides_by_no_zero(self):
        assert LengthStatistics(1.0, 0.2, 3, [0.0], (), LINE).expected_entropy(3) > 0

    @given(st.floats(0.1, 9), st.lists(st.floats(0.01, 9), min_size=3, max_size=3))
    def test_under_a_flat_curve_it_is_ev(self, level, entropies):
        probes = {length: flat(length, round(value, 3)) for length, value in enumerate(entropies, 3)}
        statistics = dataclasses.replace(STATISTICS, entropies=[1.0])
        calibrated = make_method("ev_calibrated", {"ratios": [1.0]}, statistics)
        ev = make_method("ev", {"ratios": [1.0]})
        assert calibrated.choose(Sentence(4), probes) == ev.choose(Sentence(4), probes)


def prior(source_tokens, entropy, statistics=STATISTICS, **settings):
    return search(make_method("ev_prior", settings, statistics), source_tokens, entropy=entropy)


class TestPriorEv:
    def test_every_length_of_the_window_at_its_price(self):
        # 8 tokens, ratio 1 ± 2 · 0.25: 4 … 12 slots; z = (L - 8)/2. With λ = 1 the price of 5 is 1.125, of 6 0.5.
        table = {4: 0.0, 5: 0.5, 6: 1.0, 7: 2.0, 8: 1.75}
        row, rounds = prior(8, lambda length: table.get(length, 3.0), window=2.0, weight=1.0)
        assert rounds == [list(range(4, 13))]
        assert row["scores"] == [2.0, 1.625, 1.5, 2.125, 1.75, 3.125, 3.5, 4.125, 5.0]
        assert row["length"] == 6

    def test_a_window_without_a_length_takes_the_next_one(self):
        narrow = dataclasses.replace(STATISTICS, ratio_mean=1.4, ratio_std=0.01)
        assert prior(3, lambda length: 1.0, narrow)[1] == [[4]]  # 4.2 ± 0.09
        assert prior(1, lambda length: 1.0, narrow)[1] == [[2]]  # 1.4, but never less than content and EOS

    def test_pairs_of_one_ratio_are_no_division_by_zero(self):
        same = dataclasses.replace(STATISTICS, ratio_std=0.0)
        assert prior(8, lambda length: 1.0, same)[0]["scores"] == [1.0]

    @given(st.integers(0, 60), st.floats(0.5, 2.5), st.just(0.0) | st.floats(0.01, 0.5), st.floats(0.5, 3))
    def test_candidates_are_all_lengths_within_the_window(self, source_tokens, mean, std, window):
        statistics = dataclasses.replace(STATISTICS, ratio_mean=mean, ratio_std=std)
        row, rounds = prior(source_tokens, lambda length: 1.0, statistics, window=window)
        candidates = row["candidates"]
        assert len(rounds) == 1 and candidates == list(range(candidates[0], candidates[-1] + 1))
        tokens, slack = max(1, source_tokens), 1e-9
        low, high = tokens * (mean - window * std), tokens * (mean + window * std)
        if len(candidates) > 1:
            assert candidates[0] >= max(2, low - slack) and candidates[-1] <= high + slack
            assert candidates[0] - 1 < max(2, low + slack) and candidates[-1] + 1 > high - slack
        else:
            assert candidates[0] == 2 or abs(candidates[0] - tokens * mean) <= 1


def line(source_tokens, entropy, statistics=STATISTICS, **settings):
    return search(make_method("ev_line", settings, statistics), source_tokens, entropy=entropy)


class TestLineEv:
    def test_the_nearest_lengths_at_the_price_of_the_prior(self):
        # 16 tokens: the line is at 10 slots, z = (L - 10)/2. With λ = 1 and the centre at z = 1, L = 12, the prices of
        # 8 … 12 are 2, 1.125, 0.5, 0.125, 0.
        table = {8: 0.0, 9: 0.5, 10: 1.0, 11: 1.5, 12: 1.75}
        row, rounds = line(16, table.__getitem__, candidates=5, weight=1.0, shift=1.0)
        assert rounds == [[8, 9, 10, 11, 12]]
        assert row["scores"] == [2.0, 1.625, 1.5, 1.625, 1.75]
        assert row["length"] == 10

    def test_a_length_halfway_goes_to_the_shorter(self):
        assert line(17, lambda length: 1.0, candidates=1)[1] == [[10]]  # the line is at 10.5
        assert line(17, lambda length: 1.0, candidates=2)[1] == [[10, 11]]

    def test_pairs_that_lie_on_the_line_are_no_division_by_zero(self):
        exact = dataclasses.replace(STATISTICS, line=dataclasses.replace(LINE, variance=0.0))
        assert set(line(16, lambda length: 1.0, exact)[0]["scores"]) == {1.05}

    @given(st.integers(0, 80), st.floats(-9, 9), st.floats(0.1, 3), st.integers(1, 9))
    def test_candidates_are_neighbours_and_none_left_out_is_nearer(self, source_tokens, intercept, slope, count):
        statistics = dataclasses.replace(STATISTICS, line=dataclasses.replace(LINE, intercept=intercept, slope=slope))
        candidates = line(source_tokens, lambda length: 1.0, statistics, candidates=count)[0]["candidates"]
        assert candidates == list(range(candidates[0], candidates[0] + count)) and candidates[0] >= 2
        expected = statistics.line.expected(source_tokens)
        farthest = max(abs(length - expected) for length in candidates)
        beyond = [length for length in (candidates[0] - 1, candidates[-1] + 1) if length >= 2]
        assert all(abs(length - expected) >= farthest - 1e-9 for length in beyond)


def test_the_line_alone_asks_nothing():
    length_method = make_method("length_line", {}, STATISTICS)
    row, rounds = search(length_method, 16)
    assert (row["length"], row["calls"], rounds) == (10, 0, [])
    low = dataclasses.replace(STATISTICS, line=dataclasses.replace(LINE, intercept=-9.0))
    assert search(make_method("length_line", {}, low), 3)[0]["length"] == 2
    # A standard deviation is 2 slots there.
    assert search(make_method("length_line", {"shift": 1.0}, STATISTICS), 16)[0]["length"] == 12
