"""The parts of a lead, by whose canvas is nearer to the reference's."""

from __future__ import annotations

import numpy as np

from entropy_valley.experiment.stats.significance import Analysis
from entropy_valley.experiment.tables.dissociation import split

HOW = Analysis(resamples=200, seed=1)
NEARER = np.array([[2], [0], [-1], [1]])  # by slots, on four sentences of one run


def parts_of(*leads):
    return split(np.array(leads)[:, None], NEARER, HOW).set_index("canvas")


def test_parts_add_up_to_the_lead():
    parts = parts_of(0.4, 0.2, 0.1, 0.5)
    assert parts["sentences"].to_dict() == {"nearer": 2, "equal": 1, "farther": 1, "not_nearer": 2, "all": 4}
    np.testing.assert_allclose(parts.adds["nearer"] + parts.adds["not_nearer"], parts.adds["all"])
    np.testing.assert_allclose(parts.loc["nearer", ["lead", "share"]].tolist(), [0.45, 0.75])


def test_there_are_no_shares_of_a_lead_whose_interval_ends_at_zero():
    parts = parts_of(0.4, 0.0, 0.0, 0.0)
    assert parts.lead_low["all"] == 0 and parts["share"].isna().all()
