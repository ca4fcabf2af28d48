from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.closure import aggregate, gap_closure, gap_closures, sample_std


def test_the_share_of_each_run_then_mean_and_sample_deviation():
    closure = gap_closure(method=[0.85, 0.84], ratio=[0.83, 0.82], oracle=[0.86, 0.87])
    assert closure["gap_closure_mean"] == pytest.approx((2 / 3 + 2 / 5) / 2)
    assert closure["gap_closure_std"] == pytest.approx(abs(2 / 3 - 2 / 5) / math.sqrt(2))
    assert closure["gap_closure_runs"] == 2


def test_it_is_not_the_closure_of_the_means():
    closure = gap_closure(method=[1.0, 0.0], ratio=[0.0, 0.0], oracle=[1.0, 3.0])
    assert closure["gap_closure_mean"] == 0.5


@pytest.mark.parametrize("oracle", [0.83, 0.80, 0.83 + 1e-12])
def test_no_gap_is_not_available_whatever_the_method(oracle):
    closure = gap_closure(method=[0.85], ratio=[0.83], oracle=[oracle])
    assert math.isnan(closure["gap_closure_mean"])
    assert closure["gap_closure_runs"] == 0


def test_runs_without_a_gap_are_left_out_and_counted():
    closure = gap_closure(method=[0.85, 0.85], ratio=[0.83, 0.83], oracle=[0.87, 0.80])
    assert closure["gap_closure_mean"] == pytest.approx(0.5)
    assert math.isnan(closure["gap_closure_std"])
    assert closure["gap_closure_runs"] == 1


def test_lower_scores_close_the_gap_where_lower_is_better():
    metric = Metric("ter", "TER", 1, higher_is_better=False)
    run = dict.fromkeys(("backbone", "direction", "testset", "order", "steps"), "x") | {"metric": "ter"}
    scores = {"oracle": 10.0, "ev": 25.0, "ratio": 30.0}
    rows = [{**run, "seed": seed, "method": name, "value": value} for seed in (1, 2) for name, value in scores.items()]
    summary = aggregate(pd.DataFrame(rows), [metric], set()).set_index("method")
    assert summary.gap_closure_mean.to_dict() == {"oracle": 1, "ev": 0.25, "ratio": 0}
    assert summary.delta_ratio["ev"] == -5 and set(summary["runs"]) == {2}


def test_one_run_has_no_deviation():
    assert math.isnan(sample_std([0.5]))


@given(st.floats(0.1, 0.9), st.floats(0.001, 0.1), st.floats(-2, 2))
def test_closure_recovers_the_share(ratio, gap, share):
    assert gap_closures([ratio + share * gap], [ratio], [ratio + gap])[0] == pytest.approx(share, abs=1e-6)
