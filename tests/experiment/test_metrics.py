from __future__ import annotations

import json

import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment.matrix import Cell, Run
from entropy_valley.experiment.params import jobs
from entropy_valley.experiment.scoring import Scoring, metrics_of, scoring_params
from entropy_valley.experiment.sets import CellSet
from entropy_valley.scoring.metrics import Metric, from_params

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


KIWI = {"metric": "comet", "label": "CometKiwi", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}


def scoring(**further):
    return Scoring(comet=RELEASED, metrics=further)


def test_further_metrics_come_last():
    words = {"metric": "chrf", "label": "chrF++", "word_order": 2}
    metrics = metrics_of(scoring(kiwi=KIWI, chrf_words=words, spbleu={"metric": "bleu", "label": "spBLEU"}))
    assert [metric.name for metric in metrics] == ["comet22", "bleu", "chrf", "kiwi", "chrf_words", "spbleu"]
    assert metrics[3] == Metric("kiwi", "CometKiwi", decimals=4, reference_free=True)
    assert metrics[4] == Metric("chrf_words", "chrF++", decimals=2)
    assert metrics[5] == Metric("spbleu", "spBLEU", decimals=2, segments=False, by_direction=True)


def test_params_leave_out_what_is_the_default():
    """Results of configs without further metrics stay valid."""
    comet = {"checkpoint": "Unbabel/wmt22-comet-da", "batch_size": 1}
    assert scoring_params(scoring()) == {"comet": comet}
    assert scoring_params(Scoring(comet=TOY)) == {"comet": {"checkpoint": None, "batch_size": 1}}
    named = Scoring(comet={**RELEASED, "name": "mine"}, bleu={"tokenize": "char"}, metrics={"kiwi": KIWI})
    assert scoring_params(named) == {
        "comet": {**comet, "name": "mine"},
        "bleu": {"tokenize": "char"},
        "metrics": {"kiwi": {key: value for key, value in KIWI.items() if key != "label"}},
    }


def test_languages_whose_tokenizer_changed_are_scored_anew(load):
    known, revision = load({}), {}
    experiment = known.model_copy(update={"directions": known.directions | {"en-ja": known.directions["en-zh"]}})
    for direction in ("en-zh", "en-ja"):
        run = Run(direction, "llada-8b", 1)
        one = CellSet(run, "mine", (Cell(run, "wmt22", "ratio", "med", 32),))
        revision[direction] = json.loads(jobs.scores(experiment, one))["revision"]
    assert revision == {"en-zh": 1, "en-ja": 2}


@pytest.mark.parametrize("config", [Scoring(comet=TOY), scoring(kiwi=KIWI)])
def test_a_job_scores_by_the_metrics_of_the_config(config):
    assert list(from_params(scoring_params(config))) == [metric.name for metric in metrics_of(config)]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("decimals, signature = 1, 'mine'", "has neither segment_scores nor system_score"),
        ("signature = 'mine'\n    def system_score(self, *_): return 1", "has no decimals"),
        ("decimals = 1\n    def system_score(self, *_): return 1", "has no `signature`"),
        ("def __init__(self): raise ValueError('a reason')", "a reason"),
        ("def __init__(self, size): pass", "missing 1 required positional argument: 'size'"),
    ],
)
def test_a_class_that_does_not_fit_is_refused_at_load(load, tmp_path, monkeypatch, body, says):
    module = f"unfit_{abs(hash(body))}"
    (tmp_path / f"{module}.py").write_text(f"class Mine:\n    {body}\n")
    monkeypatch.syspath_prepend(tmp_path)
    mine = {"metric": f"{module}:Mine", "label": "Mine"}
    with pytest.raises(InputError, match=rf"scoring\.metrics\.mine: .*{says}"):
        load({"scoring": {"metrics": {"mine": mine}}})
