from __future__ import annotations

import math

import fake_results
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import gap_closure, gap_closures, sample_std, summarise
from entropy_valley.tables.systems import study


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


@pytest.mark.parametrize(("ahead", "counted"), [(0.05, 2), (0.001, 0), (-0.05, 0)])
def test_a_gap_within_its_noise_is_not_available_in_any_metric(tmp_path, ahead, counted):
    """Of all tables of means, and of studies; 0.001 is about a third of a standard error over these sentences."""
    comet = {"oracle": 0.85 + ahead, "ratio": 0.85, "ev": 0.85}
    params = fake_results.write(tmp_path, directions=("en-zh",), backbones={"llada-tiny": (1, 2)}, comet=comet)
    ratio = [cell for cell in Params(params).cells if cell.method == "ratio"]
    closures = summarise(Params(params).cells, fake_results.METRICS[:2])
    assert set(closures["gap_closure_runs"]) == {counted}
    assert all(math.isnan(mean) != bool(counted) for mean in closures["gap_closure_mean"])
    runs = study(Params(params | {"columns": ["closure"], "against": ["ev", "med", 8]}))
    runs = runs[runs["statistic"] == "run"]
    assert set(runs["closure"].isna()) == {not counted} and len(runs) == 3 * len(ratio)


def test_one_run_has_no_deviation():
    assert math.isnan(sample_std([0.5]))


@given(st.floats(0.1, 0.9), st.floats(0.001, 0.1), st.floats(-2, 2))
def test_closure_recovers_the_share(ratio, gap, share):
    assert gap_closures([ratio + share * gap], [ratio], [ratio + gap])[0] == pytest.approx(share, abs=1e-6)
