from __future__ import annotations

import pytest

from entropy_valley.experiment.scoring import Scoring, metrics_of
from entropy_valley.scoring.metrics import Metric

RELEASED = {"label": "COMET-22", "checkpoint": "Unbabel/wmt22-comet-da", "batch_size": 1}
TOY = {"label": "toy COMET", "training": {"seed": 1, "steps": 2}, "batch_size": 1}


@pytest.mark.parametrize(
    ("comet", "name"), [(RELEASED, "comet22"), (TOY, "toy_comet"), ({**RELEASED, "name": "comet20"}, "comet20")]
)
def test_the_main_metric_comes_first(comet, name):
    metrics = metrics_of(Scoring(comet=comet))
    assert [metric.name for metric in metrics] == [name, "bleu", "chrf"]
    assert metrics[0].label == comet["label"]


def test_values_are_found_under_former_names():
    toy = metrics_of(Scoring(comet=TOY))[0]
    assert toy.found_in({"comet22": 0.5, "bleu": 1.0}) == 0.5
    assert toy.found_in({"comet22": 0.5, "toy_comet": 0.25}) == 0.25
    assert toy.found_in({"bleu": 1.0}) is None
    assert Metric("comet22", "COMET-22", decimals=4).found_in({"toy_comet": 0.25}) is None
