"""The parts of a lead, by whose canvas is nearer to the reference's."""

from __future__ import annotations

import numpy as np

from entropy_valley.experiment.stats.significance import Analysis
from entropy_valley.experiment.tables.dissociation import split

HOW = Analysis(resamples=200, seed=1)
NEARER = np.array([[2], [0], [-1], [1]])  # by slots, on four sentences of one run


def test_parts_add_up_to_the_lead():
    parts = {part["canvas"]: part for part in split(np.array([[0.4], [0.2], [0.1], [0.5]]), NEARER, HOW)}
    assert {name: part["sentences"] for name, part in parts.items()} == {
        **{"nearer": 2, "equal": 1, "farther": 1, "not_nearer": 2, "all": 4}
    }
    np.testing.assert_allclose(parts["nearer"]["adds"] + parts["not_nearer"]["adds"], parts["all"]["adds"])
    np.testing.assert_allclose([parts["nearer"]["lead"], parts["nearer"]["share"]], [0.45, 0.75])


def test_there_are_no_shares_of_a_lead_whose_interval_ends_at_zero():
    parts = list(split(np.array([[0.4], [0.0], [0.0], [0.0]]), NEARER, HOW))
    assert parts[-1]["lead_low"] == 0 and all(np.isnan(part["share"]) for part in parts)
