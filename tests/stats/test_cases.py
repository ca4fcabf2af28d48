"""Which sentences are shown, by rule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.tables.cases import RULES, chosen

numbers = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
sentence = st.fixed_dictionaries(
    {"delta": numbers, "more_kept": st.one_of(numbers, st.just(float("nan"))), "beyond": st.booleans()}
)


@given(st.lists(sentence, max_size=8))
def test_no_sentence_comes_twice_and_none_that_is_left_is_larger(listed):
    listed = [one | {"id": at} for at, one in enumerate(listed)]
    taken = dict(chosen(listed))
    assert len({one["id"] for one in taken.values()}) == len(taken)
    others = [one for one in listed if one not in taken.values()]
    for case, (counts, size) in RULES.items():
        left = [size(one) for one in others if counts(one)]
        assert case in taken or not left
        assert case not in taken or size(taken[case]) >= max(left, default=size(taken[case]))


def test_a_tie_is_no_case():
    assert dict(chosen([{"id": 0, "delta": 0.0, "more_kept": 0.0, "beyond": True}])) == {}
