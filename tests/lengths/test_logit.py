"""The conditional logit: what it finds again, and what it says of terms that do not help."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.lengths import logit
from entropy_valley.lengths.logit import Observed

WEIGHTS = {"a": 1.5, "b": -0.7}


def drawn(count, weights=WEIGHTS, seed=1):
    """Choices that are drawn with these weights."""
    draw, choices = random.Random(seed), []
    for _ in range(count):
        candidates = [{name: draw.gauss(0, 1) for name in weights} for _ in range(5)]
        shares = logit.probabilities(candidates, weights)
        choices.append(Observed(candidates, draw.choices(range(5), shares)[0]))
    return choices


def test_no_other_weights_are_likelier():
    choices = drawn(60)

    def cost(weights):
        scaled = sum((value / logit.PRIOR) ** 2 / 2 for value in weights.values())  # features have deviation 1, nearly
        chosen = (logit.probabilities(one.candidates, weights)[one.chosen] for one in choices)
        return scaled - sum(math.log(share) for share in chosen)

    best = logit.fit(choices, ["a", "b"])
    for name in best:
        for step in (-0.1, 0.1):
            assert cost(best) < cost(best | {name: best[name] + step})


def test_two_candidates_by_hand():
    # One choice of two in which the cheaper one is taken three times of four: exp(w) = 3.
    choices = [Observed([{"a": 0.0}, {"a": 1.0}], int(place == 0)) for place in range(4)] * 500
    assert logit.fit(choices, ["a"])["a"] == pytest.approx(math.log(3), abs=2e-3)
    assert logit.probabilities([{"a": 0.0}, {"a": 1.0}], {"a": math.log(3)}) == pytest.approx([0.75, 0.25])


def test_a_weight_stays_finite_where_nothing_is_ever_wrong():
    choices = [Observed([{"a": 0.0}, {"a": 1.0}], 0)] * 20
    assert 1 < logit.fit(choices, ["a"])["a"] < 100


def test_a_feature_that_never_differs_weighs_nothing():
    choices = [Observed([{"a": 3.0, "b": 0.0}, {"a": 3.0, "b": 1.0}], 0)] * 5
    assert logit.fit(choices, ["a", "b"])["a"] == 0.0


def test_a_feature_of_noise_does_not_help_on_held_out_choices():
    choices = drawn(200, {"a": 2.0, "noise": 0.0})
    assert logit.held_out(choices, ["a"]) > logit.held_out(choices, [])
    assert logit.held_out(choices, ["a"]) > logit.held_out(choices, ["a", "noise"]) - 0.02
    assert logit.held_out(choices, []) == pytest.approx(-math.log(5))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6), st.floats(-100, 100))
def test_probabilities_sum_to_one_and_fall_with_the_cost(values, weight):
    shares = logit.probabilities([{"a": value} for value in values], {"a": weight})
    assert sum(shares) == pytest.approx(1.0)
    ranked = sorted(zip((weight * value for value in values), shares, strict=True))
    assert all(one >= other for (_, one), (_, other) in itertools.pairwise(ranked))
