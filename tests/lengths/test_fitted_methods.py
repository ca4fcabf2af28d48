"""The selectors that are fitted to a backbone: their searches and scores under statistics made by hand."""

import dataclasses
import math
import random
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readings import LINE, STATISTICS, flat, search

from entropy_valley.errors import InputError
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.base import Example
from entropy_valley.lengths.ev import mean_entropy, nearest


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


@given(st.floats(-20, 90), st.integers(1, 9))
def test_candidates_are_neighbours_and_none_left_out_is_nearer(expected, count):
    candidates = nearest(expected, count)
    assert candidates == list(range(candidates[0], candidates[0] + count)) and candidates[0] >= 2
    farthest = max(abs(length - expected) for length in candidates)
    beyond = [length for length in (candidates[0] - 1, candidates[-1] + 1) if length >= 2]
    assert all(abs(length - expected) >= farthest - 1e-9 for length in beyond)


def line(source_tokens, entropy, statistics=STATISTICS, **settings):
    return search(make_method("ev_line", settings, statistics), source_tokens, entropy=entropy)


class TestLineEv:
    def test_the_nearest_lengths_at_the_price_of_the_prior(self):
        # 16 tokens: the line is at 10 slots, z = (L - 10)/2. With λ = 1 and the centre at z = 1, L = 12, the prices of
        # 8 … 12 are 2, 1.125, 0.5, 0.125, 0.
        table = {8: 0.0, 9: 0.5, 10: 1.0, 11: 1.5, 12: 1.75}
        row, rounds = line(16, table.__getitem__, weight=1.0, shift=1.0)
        assert rounds == [[8, 9, 10, 11, 12]]
        assert row["scores"] == [2.0, 1.625, 1.5, 1.625, 1.75]
        assert row["length"] == 10

    def test_pairs_that_lie_on_the_line_are_no_division_by_zero(self):
        exact = dataclasses.replace(STATISTICS, line=dataclasses.replace(LINE, variance=0.0))
        assert set(line(16, lambda length: 1.0, exact)[0]["scores"]) == {1.05}


def canvas(length, entropy, repeats):
    """A reading of so many slots whose first tokens repeat."""
    tokens = (7,) * (repeats + 1) + tuple(range(10, 10 + length - repeats - 1))
    return dataclasses.replace(flat(length, entropy), tokens=tokens)


class TestFittedEv:
    """16 tokens: the line is at 10 slots, z = (L - 10)/2, and 8 … 12 are probed."""

    WEIGHTS: ClassVar = {"entropy": 2.0, "z": -1.0, "z_squared": 0.5, "repeats": 1.0}

    def probes(self, repeats=(0, 0, 1, 2, 3), entropies=(3.0, 2.0, 1.0, 1.0, 1.0)):
        return {8 + n: canvas(8 + n, entropies[n], repeats[n]) for n in range(5)}

    def examples(self, count=40, seed=1):
        """The entropy falls up to the true length and then stays; repeats are 0 up to it and then rise."""
        draw, examples = random.Random(seed), []
        for _ in range(count):
            true = draw.choice([8, 9, 10, 11, 12])
            probes = {
                length: canvas(length, 1.0 + max(0, true - length) + draw.random(), max(0, length - true))
                for length in range(8, 13)
            }
            examples.append(Example(Sentence(16), probes, true))
        return examples

    def test_probabilities_by_hand(self):
        method = make_method("ev_fit", {}, STATISTICS)
        method._weights = self.WEIGHTS
        choice = method.choose(Sentence(16), self.probes())
        # Costs 2H - z + z²/2 + r for z = -1, -1/2, 0, 1/2, 1.
        costs = [6 + 1 + 0.5, 4 + 0.5 + 0.125, 2 + 0 + 0 + 1, 2 - 0.5 + 0.125 + 2, 2 - 1 + 0.5 + 3]
        total = sum(math.exp(-cost) for cost in costs)
        assert list(choice.scores.values()) == pytest.approx([cost + math.log(total) for cost in costs], abs=1e-6)
        assert choice.length == 10
        assert sum(math.exp(-score) for score in choice.scores.values()) == pytest.approx(1.0, abs=1e-5)

    def test_given_weights_choose_as_fitted_ones_do(self):
        fitted = make_method("ev_fit", {}, STATISTICS)
        fitted._weights = self.WEIGHTS
        given = make_method("ev_weighed", {"weights": self.WEIGHTS}, STATISTICS)
        assert given.choose(Sentence(16), self.probes()) == fitted.choose(Sentence(16), self.probes())
        alone = make_method("ev_weighed", {"weights": {"repeats": 1.0}}, STATISTICS)
        assert alone.choose(Sentence(16), self.probes(repeats=(3, 2, 1, 0, 1))).length == 11
        with pytest.raises(InputError, match="weights"):
            make_method("ev_weighed", {"weights": {"length": 1.0}}, STATISTICS)

    def test_it_learns_what_tells_the_lengths_apart(self):
        method, facts = make_method("ev_fit", {}, STATISTICS).learn(self.examples())
        assert facts["pairs"] == 40 and facts["weights"]["entropy"] > 0 and facts["weights"]["repeats"] > 0
        held_out = facts["held_out"]
        assert held_out["all"] > held_out["without repeats"] and held_out["all"] > held_out["without entropy"]
        others = self.examples(60, seed=2)
        right = sum(method.choose(one.sentence, one.probes).length == one.length for one in others)
        assert right > 45

    def test_a_term_that_does_not_help_is_left_out(self):
        no_repeats = [
            dataclasses.replace(one, probes={n: canvas(n, mean_entropy(r), 0) for n, r in one.probes.items()})
            for one in self.examples()
        ]
        _, facts = make_method("ev_fit", {}, STATISTICS).learn(no_repeats)
        assert "repeats" not in facts["weights"] and facts["held_out"]["kept"] >= facts["held_out"]["all"]

    def test_only_its_terms_are_weighed(self):
        _, facts = make_method("ev_fit", {"terms": ["entropy"]}, STATISTICS).learn(self.examples())
        assert facts["weights"].keys() == {"entropy"}

    def test_pairs_whose_length_is_no_candidate_say_nothing(self):
        far = [dataclasses.replace(one, length=30) for one in self.examples(5)]
        method = make_method("ev_fit", {}, STATISTICS)
        assert method.learn([*self.examples(), *far])[1] == method.learn(self.examples())[1]
        with pytest.raises(InputError, match="none of 5 development pairs has a length among its candidates"):
            method.learn(far)


def test_the_line_alone_asks_nothing():
    length_method = make_method("length_line", {}, STATISTICS)
    row, rounds = search(length_method, 16)
    assert (row["length"], row["calls"], rounds) == (10, 0, [])
    low = dataclasses.replace(STATISTICS, line=dataclasses.replace(LINE, intercept=-9.0))
    assert search(make_method("length_line", {}, low), 3)[0]["length"] == 2


@pytest.mark.parametrize(("name", "part"), [("ev_line", "line"), ("length_line", "line"), ("cal", "confidence_bias")])
def test_without_statistics_it_says_what_is_missing(name, part):
    length_method = make_method(name, {"ratios": 1.0} if name == "cal" else {})
    with pytest.raises(InputError, match=f"uses {part} of the statistics of training pairs, which were not measured"):
        search(length_method, 16)
