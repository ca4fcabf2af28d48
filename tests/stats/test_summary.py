"""Gap closure, its guards and means over runs, on frames of four sentences."""

import math

import numpy as np
import pandas as pd
import pytest

from entropy_valley.experiment.frames import Frames
from entropy_valley.experiment.stats.significance import Analysis, bootstrap_means
from entropy_valley.experiment.stats.summary import closure, closure_limits, doubtful_gaps, summary
from entropy_valley.scoring.metrics import Metric

COMET, TER = Metric("comet", "COMET", 4), Metric("ter", "TER", 1, higher_is_better=False)
KEY = {"backbone": "tiny", "direction": "en-zh", "testset": "test", "pool": "", "order": "med", "steps": 8}
NOISE = pd.Series([-1.0, 1.0, -1.0, 1.0])  # of four sentences


def frames(scores):
    """The frames of sentence scores by seed and method; the TER of a cell is 1 minus its COMET."""
    cells, sentences = [], []
    for (seed, method), values in scores.items():
        cell = KEY | {"seed": seed, "method": method}
        cells.append(cell | {"comet": np.mean(values), "ter": 1 - np.mean(values)})
        sentences += [cell | {"id": f"s{at}", "comet": value} for at, value in enumerate(values)]
    return Frames(pd.DataFrame(sentences), pd.DataFrame(cells))


def constant(**scores):
    """Two runs in which all sentences of a method have one score."""
    return {(seed, name): [score] * 4 for name, score in scores.items() for seed in (1, 2)}


def leads(errors):
    """Scores on four sentences whose mean is this many of its standard errors."""
    return list(NOISE + errors * NOISE.sem())


def of_method(table, name, metric="comet"):
    (row,) = table[(table["method"] == name) & (table["metric"] == metric)].to_dict("records")
    return row


class TestTheGap:
    @pytest.mark.parametrize(
        ("oracle", "is_open"), [(0.83, False), (0.80, False), (0.83 * (1 + 0.9e-9), False), (0.83 * (1 + 1.1e-9), True)]
    )
    def test_without_a_gap_there_is_no_closure_whatever_the_method(self, oracle, is_open):
        own, low, high = pd.Series([0.85, 0.83]), pd.Series([0.83, 0.83]), pd.Series([oracle, oracle])
        assert closure(own, low, high).notna().tolist() == [is_open, is_open]

    @pytest.mark.parametrize(
        ("oracle", "chance"),
        [
            *((leads(errors), errors < 1.96) for errors in (-3, 0, 1.8, 1.95, 1.97)),
            *(([0.5], True), ([0.0] * 4, True), ([0.5] * 4, False)),  # a single sentence; all the same
        ],
    )
    def test_a_lead_of_up_to_1_96_standard_errors_may_be_chance(self, oracle, chance):
        gaps = doubtful_gaps(frames({(1, "oracle"): oracle, (1, "ratio"): [0.0] * len(oracle)}).sentences, "comet")
        assert gaps["ratio"].tolist() == [chance]

    def test_each_run_is_judged_by_itself_and_against_each_fixed_ratio(self):
        scores = constant(ratio=0.0) | {(1, "ratio_eos"): leads(3), (1, "oracle"): leads(3), (2, "oracle"): leads(1)}
        gaps = doubtful_gaps(frames(scores).sentences, "comet")
        assert gaps["ratio"].tolist() == [False, True]
        assert gaps["ratio_eos"].fillna(-1).tolist() == [True, -1]


class TestMeansOverRuns:
    @pytest.mark.parametrize("oracle", [leads(1.8), [-0.1] * 4])
    def test_a_run_without_a_gap_is_left_out_and_counted_in_every_metric(self, oracle):
        """Where the lead may be chance, and where Oracle scores lower. What is no closure is of all runs."""
        scores = constant(ratio=0.0, ev=0.5) | {(1, "oracle"): [1.0] * 4, (2, "oracle"): oracle}
        for metric, sign in (("comet", 1), ("ter", -1)):
            row = of_method(summary(frames(scores), [COMET, TER]), "ev", metric)
            assert (row["gap_closure_mean"], row["gap_closure_runs"]) == (pytest.approx(0.5), 1)
            assert math.isnan(row["gap_closure_std"])
            assert (row["runs"], row["delta_ratio"]) == (2, pytest.approx(sign * 0.5))

    def test_lower_scores_close_the_gap_where_lower_is_better(self):
        table = summary(frames(constant(oracle=0.9, ev=0.75, ratio=0.7)), [COMET, TER])
        closures = {name: of_method(table, name, "ter")["gap_closure_mean"] for name in ("oracle", "ev", "ratio")}
        assert closures == {"oracle": pytest.approx(1), "ev": pytest.approx(0.25), "ratio": 0}


@pytest.mark.parametrize("gap", [0.0, 0.28, 0.34, 3.0])
def test_limits_need_a_gap_in_all_but_one_of_40_resamples(gap):
    oracle = pd.Series(np.tile(NOISE, 10) + gap)
    without = np.mean(bootstrap_means(oracle.to_numpy(), Analysis(resamples=400, seed=1)) <= 0)
    limits = closure_limits(oracle / 2, 0 * oracle, oracle, Analysis(resamples=400, seed=1))
    if without > 1 / 40:
        assert all(map(math.isnan, limits.values()))
    else:
        assert list(limits.values()) == pytest.approx([0.5, 0.5])
