"""Ratios dealt to other sentences."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.lengths.baselines import reassign


def test_sentences_of_one_length_exchange_their_canvases():
    lengths = list(range(5, 45))
    dealt = reassign(lengths, [10] * 40, 1, "all")
    assert sorted(dealt) == lengths and dealt != lengths
    assert dealt == reassign(lengths, [10] * 40, 1, "all") != reassign(lengths, [10] * 40, 2, "all")


def test_a_ratio_is_taken_of_the_new_sentence_to_the_nearest_slot():
    # Ratios 12/10 and 4/5 change places, or stay: 10 tokens take 8 or 12 slots, 5 tokens take 6 or 4.
    dealt = {tuple(reassign([12, 4], [10, 5], seed, "all")) for seed in range(20)}
    assert dealt == {(12, 4), (8, 6)}
    dealt = {tuple(reassign([2, 40], [1, 30], seed, "all")) for seed in range(20)}
    assert dealt == {(2, 40), (2, 60)}  # 1.33 slots: two


def test_within_deciles_ratios_stay_among_sentences_of_like_length():
    # Twenty sentences: deciles are pairs of neighbours by source length, each with its own ratio.
    sources = [3 * place + 3 for place in range(20)][::-1]
    lengths = [count * (1 + rank // 2) for rank, count in enumerate(sources)]
    for seed in range(5):
        assert reassign(lengths, sources, seed, "deciles") == lengths
    assert reassign(lengths, sources, 0, "all") != lengths


sentences = st.lists(st.tuples(st.integers(2, 60), st.integers(0, 40)), min_size=1, max_size=40)


@given(sentences, st.integers(0, 9), st.sampled_from(["all", "deciles"]))
def test_every_canvas_has_a_ratio_of_the_method(pairs, seed, within):
    lengths, sources = map(list, zip(*pairs, strict=True))
    counts = [max(1, count) for count in sources]
    ratios = {Fraction(length, count) for length, count in zip(lengths, counts, strict=True)}
    for length, count in zip(reassign(lengths, sources, seed, within), counts, strict=True):
        assert length in {max(2, round(ratio * count)) for ratio in ratios}
