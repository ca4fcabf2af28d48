from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from readings import search

from entropy_valley.lengths import make_method
from entropy_valley.lengths.base import candidate_length

RATIOS = [0.8, 1.0, 1.1]  # for 20 tokens 17, 21, 23 slots; a step below is 0.2, one above 0.1


def adaptive(source_tokens, valley, ratios=RATIOS, **settings):
    length_method = make_method("adaptive_ev", {"ratios": ratios, **settings})
    return search(length_method, source_tokens, entropy=lambda length: float(abs(length - valley)))


def test_the_window_follows_the_valley_by_that_sides_step():
    row, rounds = adaptive(20, 14)
    assert rounds == [[17, 21, 23], [13], [9]]  # 0.6, then 0.4, where the entropy rises again
    assert (row["length"], row["calls"]) == (13, 5)
    row, rounds = adaptive(20, 26)
    assert rounds == [[17, 21, 23], [25], [27]]  # 1.2, then 1.3: as far from 26, and the shorter one wins
    assert row["length"] == 25


def test_three_steps_a_side_are_the_most():
    row, rounds = adaptive(20, 99)
    assert [length for lengths in rounds[1:] for length in lengths] == [25, 27, 29]
    assert row["length"] == 29
    assert adaptive(20, 99, extensions=1)[0]["length"] == 25
    assert adaptive(20, 99, extensions=0)[0]["length"] == 23


def test_a_ratio_never_falls_to_nothing():
    _, rounds = adaptive(20, 2, ratios=[0.2, 0.3])
    assert rounds == [[5, 7], [3]]  # 0.1; a ratio of 0 is none


grids = st.lists(st.integers(10, 300), min_size=1, max_size=6, unique=True).map(lambda n: [ratio / 100 for ratio in n])


@given(grids, st.integers(0, 80), st.lists(st.integers(0, 9), min_size=7, max_size=7))
def test_the_choice_is_the_lowest_probe_and_extra_probes_are_few(ratios, source_tokens, entropies):
    length_method = make_method("adaptive_ev", {"ratios": ratios})
    row, rounds = search(length_method, source_tokens, entropy=lambda length: float(entropies[length % 7]))
    window = {candidate_length(ratio, source_tokens) for ratio in ratios}
    assert rounds[0] == sorted(window)
    assert row["calls"] == len(row["candidates"]) <= len(window) + 6
    assert (min(row["scores"]), row["length"]) == min(zip(row["scores"], row["candidates"], strict=True))
    ev, _ = search(make_method("ev", {"ratios": ratios}), source_tokens, lambda length: float(entropies[length % 7]))
    assert min(row["scores"]) <= min(ev["scores"])
