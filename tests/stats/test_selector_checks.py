"""Which systems EV's checks compare, and the bands of its valleys."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from entropy_valley.experiment.tables.valley import OVER_RUNS, OVER_SENTENCES, over_runs


@pytest.fixture
def points():
    """A place of two runs."""
    place = {"backbone": "tiny", "direction": "en-zh", "testset": "test", "axis": "ratios", "at": 0.75}
    run = {"lowest": math.nan, "standard_error": 0.05, "sentences": 9}
    return pd.DataFrame([{**place, **run, "seed": seed, "mean": 2.0 + seed} for seed in (1, 2)])


def test_runs_share_a_band_of_deviations_and_a_single_run_has_its_sentences(points):
    both = over_runs(points)
    assert set(both["spread"]) == {OVER_RUNS} and set(both["runs"]) == {2}
    single = over_runs(points[points["seed"] == 1])
    assert set(single["spread"]) == {OVER_SENTENCES}
    assert (single["high"] - single["mean"]).to_numpy() == pytest.approx(1.96 * 0.05)
