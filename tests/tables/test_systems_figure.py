"""The selectors' figure, on made-up scores."""

from __future__ import annotations

import itertools

import fake_results
import making
import numpy as np
import pytest
from fake_sets import copied
from matplotlib.text import Text

from entropy_valley.tables.labels import METHODS
from entropy_valley.tables.systems import SystemsFigure, spread


@pytest.fixture
def drawn(tmp_path):
    """Every method that has a printed name, close together, and one that has none, under another order and budget."""
    comet = fake_results.COMET | {
        name: 0.848 + place / 2000
        for place, name in enumerate(name for name in METHODS if name not in fake_results.COMET)
    }
    small = {"directions": ("en-zh", "en-de"), "backbones": {"llada-tiny": (1, 2)}, "sentences": 10}
    params = fake_results.write(tmp_path, **small, comet=comet)
    own = fake_results.write(tmp_path, **small, comet={"grow": 0.82}, steps=(64,))
    params["cells"] += [copied(cell, order="grow") for cell in own["cells"]]
    return making.drawn(SystemsFigure, params)


def test_names_stand_in_the_order_of_the_scores_and_apart(drawn):
    figure, plotted = drawn
    rows = plotted[plotted.direction == "en-zh"].sort_values("mean")
    axes = figure.axes[0]
    names = [text.get_text() for text in axes.texts]
    assert len(names) == len(rows)
    assert names[list(rows.method).index("grow")] == "grow, T = 64"
    assert names[list(rows.method).index("ev")] == "EV"
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the line to the point
    assert all(above.y0 > below.y1 for below, above in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]),
        ([0.1, 0.1, 0.15], [0.1, 0.2, 0.3]),
        ([0.9, 0.95, 1.0], [0.8, 0.9, 1.0]),
    ],
)
def test_spread(wanted, expected):
    assert np.allclose(spread(wanted, 0.1), expected)
