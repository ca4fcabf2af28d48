"""Which sentences are shown, by rule."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.experiment.tables.cases import RULES, chosen

numbers = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
sentence = st.fixed_dictionaries(
    {"delta": numbers, "more_kept": st.one_of(numbers, st.just(float("nan"))), "beyond": st.booleans()}
)


def frame(listed):
    columns = ["delta", "more_kept", "beyond"]
    return pd.DataFrame(listed, columns=columns).assign(loss=lambda table: -table["delta"])


@given(st.lists(sentence, max_size=8))
def test_no_sentence_comes_twice_and_none_that_is_left_is_larger(listed):
    sentences = frame(listed)
    taken = chosen(sentences)
    assert len({*taken.values()}) == len(taken)
    left = sentences.drop(index=[*taken.values()])
    for case, (counts, size) in RULES.items():
        sizes = [*left.query(counts)[size].itertuples(index=False, name=None)]
        assert case in taken or not sizes
        assert case not in taken or tuple(sentences.loc[taken[case], size]) >= max(sizes, default=())


def test_a_tie_is_no_case():
    assert chosen(frame([{"delta": 0.0, "more_kept": 0.0, "beyond": True}])) == {}
