"""Gap closure, its guards and means over runs, on frames of a few rows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.closure import (
    BASELINES,
    chance_leads,
    closure_limits,
    gap_closures,
    may_be_chance,
    over_runs,
    sample_std,
    summarise,
)
from entropy_valley.stats.significance import Analysis, bootstrap_means

COMET, TER = Metric("comet", "COMET", 4), Metric("ter", "TER", 1, higher_is_better=False)
KEY = {"backbone": "tiny", "direction": "en-zh", "testset": "test", "pool": "", "order": "med", "steps": 8}
NOISE = np.array([-1.0, 1.0, -1.0, 1.0])  # four sentences


def frames(scores, key=KEY):
    """The frames of cells and sentences, of sentence scores by seed and method; TER is 100 minus COMET."""
    cells, sentences = [], []
    for (seed, method), values in scores.items():
        cell = key | {"seed": seed, "method": method}
        cells.append(cell | {"comet": np.mean(values), "ter": 100 - np.mean(values)})
        sentences += [cell | {"id": f"s{at}", "comet": value} for at, value in enumerate(values)]
    return pd.DataFrame(cells), pd.DataFrame(sentences)


def leads(errors):
    """Leads on four sentences whose mean is this many standard errors."""
    return pd.Series(NOISE + errors * pd.Series(NOISE).sem())


class TestTheGap:
    @given(st.floats(0.1, 0.9), st.floats(0.001, 0.1), st.floats(-2, 2))
    def test_a_closure_is_the_share_of_the_gap(self, ratio, gap, share):
        assert gap_closures([ratio + share * gap], [ratio], [ratio + gap])[0] == pytest.approx(share, abs=1e-6)

    @pytest.mark.parametrize("oracle", [0.83, 0.80, 0.83 * (1 + 0.9e-9)])
    def test_no_gap_has_no_closure_whatever_the_method(self, oracle):
        assert np.isnan(gap_closures([0.85, 0.83], [0.83, 0.83], [oracle, oracle])).all()

    def test_a_gap_just_above_rounding_has_one(self):
        assert np.isfinite(gap_closures([0.85], [0.83], [0.83 * (1 + 1.1e-9)])).all()

    @pytest.mark.parametrize(("errors", "chance"), [(-3, True), (0, True), (1.8, True), (1.95, True), (1.97, False)])
    def test_a_lead_of_up_to_1_96_standard_errors_may_be_chance(self, errors, chance):
        assert may_be_chance(leads(errors)) == chance

    @pytest.mark.parametrize(("scores", "chance"), [([0.5], True), ([0.0] * 4, True), ([0.5] * 4, False)])
    def test_a_single_sentence_and_ties(self, scores, chance):
        assert may_be_chance(pd.Series(scores)) == chance

    def test_each_run_is_judged_by_itself_and_against_each_fixed_ratio(self):
        scores = {(seed, "ratio"): [0.0] * 4 for seed in (1, 2)} | {(1, "ratio_eos"): list(leads(3))}
        scores |= {(1, "oracle"): list(leads(3)), (2, "oracle"): list(leads(1))}
        found = chance_leads(frames(scores)[1], "comet")
        assert found[["seed", "baseline", "chance"]].to_numpy().tolist() == [
            [1, "ratio", False],
            [1, "ratio_eos", True],
            [2, "ratio", True],
        ]

    def test_without_oracle_there_is_no_gap(self):
        cells, sentences = frames({(1, "ratio"): [0.5] * 4, (1, "ev"): [0.6] * 4})
        assert chance_leads(sentences, "comet").empty
        assert summarise(cells, sentences, [COMET])["gap_closure_mean"].isna().all()


class TestMeansOverRuns:
    def test_the_share_of_each_run_then_mean_and_sample_deviation(self):
        scores = pd.DataFrame({"ev": [0.85, 0.84], "ratio": [0.83, 0.82], "oracle": [0.86, 0.87]}, [1, 2])
        values = over_runs(scores, "ev", {})
        assert values["gap_closure_mean"] == pytest.approx((2 / 3 + 2 / 5) / 2)  # not that of the means: 0.5
        assert values["gap_closure_std"] == pytest.approx(abs(2 / 3 - 2 / 5) / math.sqrt(2))
        assert (values["gap_closure_runs"], values["delta_ratio"]) == (2, pytest.approx(0.02))
        assert "gap_closure_eos_mean" not in values

    @pytest.mark.parametrize("no_gap", [{"ratio": [2]}, {}])
    def test_runs_without_a_gap_are_left_out_and_counted(self, no_gap):
        """By what the sentences say, and where Oracle scores lower."""
        oracle = [0.87, 0.87 if no_gap else 0.80]
        scores = pd.DataFrame({"ev": [0.85, 0.85], "ratio": [0.83, 0.83], "oracle": oracle}, [1, 2])
        values = over_runs(scores, "ev", no_gap)
        assert (values["gap_closure_mean"], values["gap_closure_runs"]) == (pytest.approx(0.5), 1)
        assert math.isnan(values["gap_closure_std"])
        assert (values["runs"], values["delta_ratio"]) == (2, pytest.approx(0.02))  # of all runs

    def test_a_lead_that_may_be_chance_counts_in_no_metric(self):
        oracle = {(1, "oracle"): list(leads(3)), (2, "oracle"): list(leads(1.8))}
        fixed = {(seed, name): [value] * 4 for seed in (1, 2) for name, value in (("ratio", 0.0), ("ev", 0.5))}
        summary = summarise(*frames(fixed | oracle), [COMET, TER])
        assert set(summary["runs"]) == {2} and set(summary["gap_closure_runs"]) == {1}
        assert list(summary["metric"]) == ["comet"] * 3 + ["ter"] * 3

    def test_lower_scores_close_the_gap_where_lower_is_better(self):
        scores = {"oracle": [90.0] * 4, "ev": [75.0] * 4, "ratio": [70.0] * 4}
        summary = summarise(*frames({(seed, name): of for name, of in scores.items() for seed in (1, 2)}), [COMET, TER])
        of_ter = summary[summary["metric"] == "ter"].set_index("method")
        assert of_ter["gap_closure_mean"].to_dict() == {"oracle": 1, "ev": 0.25, "ratio": 0}
        assert of_ter["delta_ratio"]["ev"] == -5

    def test_one_run_has_no_deviation(self):
        assert math.isnan(sample_std([0.5]))

    def test_all_methods_need_the_same_seeds(self):
        scores = {(seed, name): [0.5] * 4 for seed in (1, 2) for name in ("ev", "ratio")}
        del scores[2, "ratio"]
        with pytest.raises(InputError, match=r"tiny/en-zh/test/med/8: no scores of ratio of seed 2\. Give every"):
            summarise(*frames(scores), [COMET])


@pytest.mark.parametrize("gap", [0.0, 0.4, 0.6, 3.0])
def test_limits_need_a_gap_in_all_but_one_of_40_resamples(gap):
    how = Analysis(resamples=400, seed=1)
    ratio, oracle = pd.Series([0.0] * 40), pd.Series(np.tile(NOISE, 10) + gap)
    without = np.mean(bootstrap_means(oracle.to_numpy(), 400, 1) <= 0)
    limits = closure_limits(oracle / 2, ratio, oracle, how)
    assert all(map(math.isnan, limits.values())) == (without > 0.025)
    if without <= 0.025:
        assert list(limits.values()) == pytest.approx([0.5, 0.5])


def test_the_baselines_are_the_papers_ratio_and_the_fair_one():
    assert BASELINES == {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}
