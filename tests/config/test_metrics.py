from __future__ import annotations

import json

import pytest

from entropy_valley.config import params
from entropy_valley.config.matrix import Cell, CellSet, Run
from entropy_valley.config.schema import Scoring, metrics_of, scoring_params
from entropy_valley.errors import InputError
from entropy_valley.scoring import from_params
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


def test_params_have_every_value():
    comet = {"checkpoint": "Unbabel/wmt22-comet-da", "batch_size": 1, "reference_free": False, "revision": None}
    named = Scoring(comet={**RELEASED, "name": "mine"}, bleu={"tokenize": "char"}, metrics={"kiwi": KIWI})
    params = scoring_params(named)
    assert params["comet"] == {**comet, "name": "mine"}
    assert params["bleu"]["tokenize"] == "char"
    assert params["metrics"]["kiwi"]["reference_free"] and "label" not in params["metrics"]["kiwi"]


def test_languages_whose_tokenizer_changed_are_scored_anew(load):
    known, revision = load({}), {}
    experiment = known.model_copy(update={"directions": known.directions | {"en-ja": known.directions["en-zh"]}})
    for direction in ("en-zh", "en-ja"):
        run = Run(direction, "llada-8b", 1)
        one = CellSet(run, "mine", (Cell(run, "wmt22", "ratio", "med", 32),))
        revision[direction] = json.loads(params.scores(experiment, one))["revision"]
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
