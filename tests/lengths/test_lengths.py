from __future__ import annotations

from decimal import ROUND_FLOOR

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.base import candidate_length


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


@given(st.sampled_from([0.70, 0.75, 0.80, 0.85, 0.90, 1.0, 1.1, 1.2, 1.3, 1.4, 1.8]), st.integers(1, 400))
def test_a_product_in_binary_floating_point(ratio, source):
    binary = candidate_length(ratio, source, exact=False)
    assert binary == max(1, int(source * ratio)) + 1
    assert candidate_length(ratio, source) - binary in (0, 1)


@pytest.mark.parametrize(
    ("ratio", "sources"), [(0.70, {90, 170, 180}), (1.40, {45, 85, 90, 165, 170, 175, 180}), (0.80, set())]
)
def test_where_the_two_products_differ(ratio, sources):
    both = {n: {candidate_length(ratio, n, exact=exact) for exact in (True, False)} for n in range(1, 200)}
    assert {n for n, lengths in both.items() if len(lengths) > 1} == sources


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


# The paper's worked cases (appendix, "Fixed grid wins and boundary failures"): reference, Ratio's and EV's canvas.
CASES = {
    "Tap Reset Now.": (6, 5, 6),
    "Under #PRS_ORG#, tap Sign out.": (12, 10, 12),
    "Please give me a moment.": (6, 6, 7),
}
GRID = (0.70, 0.75, 0.80, 0.85, 0.90)


def fitting(ratio_length, ev_length, slot):
    """The source lengths for which Fixed Ratio 0.8 and some candidate of EV's grid have these canvases."""
    return [
        source
        for source in range(1, 40)
        if candidate_length(0.8, source, slot) == ratio_length
        and ev_length in [candidate_length(ratio, source) for ratio in GRID]
    ]


def test_the_papers_worked_cases_fit_a_fixed_ratio_without_the_eos_slot_alone():
    without = {source: fitting(ratio, ev, False) for source, (_, ratio, ev) in CASES.items()}
    assert without == {
        "Tap Reset Now.": [7],
        "Under #PRS_ORG#, tap Sign out.": [13],
        "Please give me a moment.": [8],
    }
    assert [source for source, (_, ratio, ev) in CASES.items() if not fitting(ratio, ev, True)] == [
        "Under #PRS_ORG#, tap Sign out."
    ]


def test_the_papers_reference_ratio_counts_no_eos():
    """r of the third case is about 0.6: five of the reference's six slots are text, over eight source tokens."""
    slots, *canvases = CASES["Please give me a moment."]
    (source,) = fitting(*canvases, False)
    assert round((slots - 1) / source, 1) == 0.6 != round(slots / source, 1)
    assert min(candidate_length(ratio, source) for ratio in GRID) == slots


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
