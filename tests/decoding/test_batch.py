from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.decoding.batch import lowest

CANVASES = st.lists(
    st.lists(st.sampled_from([-0.0, 0.0, 0.25, 0.5, 1.0, 2.0]), min_size=1, max_size=9).flatmap(
        lambda scores: st.tuples(st.just(scores), st.integers(0, len(scores)))
    ),
    min_size=1,
    max_size=6,
)


@given(CANVASES)
def test_the_lowest_of_each_canvas_ties_to_the_lower_position(canvases):
    expected, start = set(), 0
    for scores, count in canvases:
        best = sorted(range(len(scores)), key=lambda place: (scores[place], place))[:count]
        expected |= {start + place for place in best}
        start += len(scores)
    scores = np.array([score for canvas, _ in canvases for score in canvas])
    canvas = np.repeat(np.arange(len(canvases)), [len(scores) for scores, _ in canvases])
    chosen = lowest(scores, canvas, np.array([count for _, count in canvases]))
    assert set(chosen.tolist()) == expected and len(chosen) == len(expected)
