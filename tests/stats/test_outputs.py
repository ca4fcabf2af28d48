from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.tables.dream_instruct import empty_rate, mean_characters


def test_worked_by_hand():
    texts = ["", "....", " \n", "词语", "ab c"]
    assert empty_rate(texts) == 2 / 5
    assert mean_characters(texts) == (0 + 4 + 2 + 2 + 4) / 5


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20), st.integers(1, 20))
def test_another_empty_output_moves_both(texts, more):
    emptier = texts + [""] * more
    assert empty_rate(emptier) >= empty_rate(texts)
    assert mean_characters(emptier) <= mean_characters(texts)
