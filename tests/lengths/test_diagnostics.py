"""What figures show of all-mask canvases: the valley and the concentration of SIG; by hand."""

import pytest

from entropy_valley.translation import diagnostics
from entropy_valley.translation.diagnostics import ValleyCanvas, gini

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


@pytest.mark.parametrize(
    ("sigs", "expected"),
    [
        ([3, 1], 0.25),  # 2 (1 · 1 + 2 · 3) / (2 · 4) - 3/2
        ([-5, 3, -1, 1], 0.625),  # of 0, 0, 1, 3: 2 (3 + 12) / 16 - 5/4
        ([0, -1], 0),
    ],
)
def test_gini_by_hand(sigs, expected):
    assert gini(sigs) == pytest.approx(expected)
    assert gini(sigs[::-1]) == pytest.approx(expected)
