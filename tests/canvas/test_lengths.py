from __future__ import annotations

from decimal import ROUND_FLOOR

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.canvas.lengths import candidate_length


@pytest.mark.parametrize(
    ("ratio", "source", "length"),
    [
        (0.7, 10, 8),
        (0.29, 100, 30),  # 0.29 * 100 is 28.999999999999996 in binary
        (1.1, 10, 12),
        (1.15, 100, 116),  # 1.15 * 100 is 114.99999999999999
        (0.5, 1, 2),
        (0.01, 3, 2),
        (2, 3, 7),
    ],
)
def test_worked_cases(ratio, source, length):
    assert candidate_length(ratio, source) == length


def test_the_eos_slot_is_a_switch():
    assert candidate_length(0.7, 10, reserve_eos_slot=False) == 7
    assert candidate_length(0.1, 1, reserve_eos_slot=False) == 1


@given(st.decimals("0.01", "9.99", places=2), st.integers(1, 2000))
def test_it_is_the_floor_of_the_decimal_product(ratio, source):
    floor = int((ratio * source).to_integral_value(ROUND_FLOOR))
    assert candidate_length(float(ratio), source) == max(1, floor) + 1


@given(st.floats(0.01, 5), st.floats(0.01, 5), st.integers(1, 500))
def test_it_grows_with_the_ratio(one, other, source):
    low, high = sorted([one, other])
    assert candidate_length(low, source) <= candidate_length(high, source)
    assert isinstance(candidate_length(low, source), int)
