from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.lengths.diagnostics import concentration, gini, top_share


@pytest.mark.parametrize(
    ("sigs", "expected"),
    [
        ([1, 1, 1, 1, 1], 0.2),  # one slot of five
        ([0, 0, 0, 0, 3], 1),
        ([4, 1, 3, 1, 1, 0], 0.7),  # ⌈1.2⌉ = two slots: 4 + 3 of 10
        ([2], 1),
        ([0] * 10, 0.2),  # nothing depends on the source: two slots of ten
        ([1] * 15, 0.2),  # 0.2 · 15 is 3.0000000000000004 in binary: three slots, not four
    ],
)
def test_the_share_of_the_largest_by_hand(sigs, expected):
    assert concentration(sigs, {"measure": "top_share", "share": 0.2}) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sigs", "expected"),
    [
        ([1, 1, 1], 0),
        ([0, 0, 0, 3], 0.75),
        ([3, 1], 0.25),  # 2 (1 · 1 + 2 · 3) / (2 · 4) - 3/2
        ([-5, 3, -1, 1], 0.625),  # of 0, 0, 1, 3: 2 (3 + 12) / 16 - 5/4
        ([0, -1], 0),
    ],
)
def test_gini_by_hand(sigs, expected):
    assert concentration(sigs, {"measure": "gini"}) == pytest.approx(expected)
    assert concentration(sigs[::-1], {"measure": "gini"}) == pytest.approx(expected)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_gini_is_half_the_mean_difference_over_the_mean(sigs):
    values, mean = np.array(sigs), np.mean(sigs)
    if mean > 1e-6:
        differences = np.abs(values[:, None] - values).mean()
        assert gini(sigs) == pytest.approx(differences / (2 * mean), abs=1e-9)


def test_the_two_measures_differ():
    sigs = [0.1, 0.5, 0.2, 0.9, 0.3]
    assert concentration(sigs, {"measure": "gini"}) != concentration(sigs, {"measure": "top_share", "share": 0.2})


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(0.01, 1), st.randoms())
def test_it_lies_between_evenness_and_one_slot_and_has_no_order(sigs, share, rng):
    score = top_share(sigs, share)
    assert min(share, 1) - 1e-8 <= score <= 1 + 1e-9
    rng.shuffle(sigs)
    assert top_share(sigs, share) == score
