"""Which canvases the valley is read on, and its curves; by hand."""

from __future__ import annotations

import pytest

from entropy_valley.data.sampling import draw
from entropy_valley.lengths import diagnostics
from entropy_valley.lengths.diagnostics import ValleyCanvas


def test_around_the_reference_every_canvas_that_has_content():
    # References of 3 and 9 tokens: 4 and 10 slots with the EOS; 4 - 3 = 1 slot would be the EOS's alone.
    places = diagnostics.around_reference([0, 2], [3, 7, 9], 3)
    assert [place.length for place in places if place.row == 0] == [2, 3, 4, 5, 6, 7]
    assert [place.at for place in places if place.row == 0] == [-2, -1, 0, 1, 2, 3]
    assert [place.length for place in places if place.row == 2] == [7, 8, 9, 10, 11, 12, 13]


def test_the_grids_canvases_are_evs_candidates():
    assert diagnostics.on_grid([1], [0, 10], [0.29, 1.5]) == [ValleyCanvas(1, 0.29, 3), ValleyCanvas(1, 1.5, 16)]


POINTS = [  # two sentences around their references; the second is too short for -1
    (ValleyCanvas(0, -1, 4), 0.5),
    (ValleyCanvas(0, 0, 5), 0.25),
    (ValleyCanvas(0, 1, 6), 1.0),
    (ValleyCanvas(1, 0, 2), 0.75),
    (ValleyCanvas(1, 1, 3), 2.0),
]


def test_a_curve_averages_the_sentences_that_have_a_canvas_there():
    below, at, above = diagnostics.curve(*zip(*POINTS, strict=True))
    assert below == {"at": -1, "mean": 0.5, "standard_error": None, "mean_length": 4.0, "sentences": 1}
    assert (at["mean"], at["mean_length"], at["sentences"]) == (0.5, 3.5, 2)
    assert at["standard_error"] == pytest.approx(0.25)  # deviation of 0.25 and 0.75: 0.3536, over the root of 2
    assert above["mean"] == 1.5


def test_complete_sentences_have_a_canvas_everywhere():
    points = diagnostics.complete(*zip(*POINTS, strict=True))
    assert [(point["at"], point["mean"], point["sentences"]) for point in points] == [
        (-1, 0.5, 1),
        (0, 0.25, 1),
        (1, 1, 1),
    ]
    assert [point["lowest"] for point in points] == [0, 1, 0]


def test_the_shorter_canvas_is_the_lowest_on_a_tie_and_no_complete_sentence_is_no_curve():
    tie = [(ValleyCanvas(0, -1, 4), 0.5), (ValleyCanvas(0, 0, 5), 0.5)]
    assert [point["lowest"] for point in diagnostics.complete(*zip(*tie, strict=True))] == [1, 0]
    assert diagnostics.complete([ValleyCanvas(0, -1, 4), ValleyCanvas(1, 0, 5)], [0.5, 0.5]) == []


def test_sentences_are_drawn_as_a_test_subset_is():
    rows = [{"source": f"s{n}", "target": f"t{n}"} for n in range(20)]
    few, more = draw(rows, 5, 1, "keyed_hash"), draw(rows, 9, 1, "keyed_hash")
    assert few == sorted(few) and set(few) < set(more)
    assert draw(rows, 5, 2, "keyed_hash") != few != draw(rows, 5, 1, "first") == list(range(5))
    assert draw(rows, 500, 1, "keyed_hash") == draw(rows, 500, 1, "first") == list(range(20))
