from __future__ import annotations

from decimal import ROUND_FLOOR

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.base import candidate_length


@given(st.sampled_from([0.70, 0.75, 0.80, 0.85, 0.90, 1.0, 1.1, 1.2, 1.3, 1.4, 1.8]), st.integers(1, 400))
def test_a_product_in_binary_floating_point(ratio, source):
    binary = candidate_length(ratio, source, exact=False)
    assert binary == max(1, int(source * ratio)) + 1
    assert candidate_length(ratio, source) - binary in (0, 1)


@pytest.mark.parametrize(
    ("name", "given"),
    [("ratio", {"ratios": 0.7}), ("ev", {"ratios": [0.7]}), ("neighbours", {"ratios": [0.7], "radius": 1})],
)
def test_methods_take_the_product_that_their_settings_say(name, given):
    exact, binary, explicit = (make_method(name, given | more) for more in ({}, {"exact": False}, {"exact": True}))
    lengths = [proposed(method, Sentence(90)) for method in (exact, binary, explicit)]
    assert lengths[0] - lengths[1] == 1 and lengths[0] == lengths[2]


def proposed(method, sentence):
    return max(method.propose(sentence, {}), default=None) or method.choose(sentence, {}).length


@given(st.decimals("0.01", "9.99", places=2), st.integers(1, 2000))
def test_it_is_the_floor_of_the_decimal_product(ratio, source):
    floor = int((ratio * source).to_integral_value(ROUND_FLOOR))
    assert candidate_length(float(ratio), source) == max(1, floor) + 1
