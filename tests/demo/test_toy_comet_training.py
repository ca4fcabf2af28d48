from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_rule import run_here

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo import grammar, toy_comet
from entropy_valley.scoring import comet, comet_checkpoint
from entropy_valley.scoring.metrics import ScoringJob

SENTENCES = list(itertools.islice(grammar.stream(2), 60))
TEXTS = st.sampled_from([text for one in SENTENCES for text in (one.en, one.zh, one.de, one.fr)])
VOCABULARY = [" wrong", "错"]


def test_units_of_each_script():
    assert toy_comet.units("Call #PRS_ORG# today.") == [" Call", " #PRS_ORG#", " today", "."]
    assert toy_comet.units("在#PRS_ORG#付79%。") == ["在", "#PRS_ORG#", "付", "79%", "。"]
    assert toy_comet.units("Quand est-ce qu'il va ?") == [" Quand", " est-ce", " qu'il", " va", " ?"]


@given(TEXTS, st.data())
def test_edits_are_counted_exactly(text, data):
    reference = toy_comet.units(text)
    kind = data.draw(st.sampled_from(["drop", "repeat", "insert", "replace"]))
    places = data.draw(st.sets(st.integers(0, len(reference) - 1)))
    spoiled, edits = toy_comet.corrupt(reference, dict.fromkeys(places, kind), VOCABULARY, random.Random(0))
    assert edits == len(places)
    change = {"drop": -1, "repeat": 1, "insert": 1, "replace": 0}[kind]
    assert len(spoiled) == len(reference) + change * len(places)


def rows(count, seed, target="zh"):
    return [{"source": one.en, "target": getattr(one, target)} for one in itertools.islice(grammar.stream(seed), count)]


@pytest.mark.cluster  # it trains long enough to rank texts
def test_training_makes_a_metric(tmp_path):
    read = {"train": [], "dev": []}
    for direction, target in (("en-zh", "zh"), ("en-de", "de")):
        for split, count, seed in (("train", 800, 1), ("dev", 60, 2)):
            read[split].append(tmp_path / direction / f"{split}.jsonl")
            files.write_jsonl(read[split][-1], rows(count, seed, target))
    spec = {"revision": 1, "seed": 1, "steps": 160, "width": 64}
    short = {**spec, "steps": 10, "width": 16, "minimum_spearman": -1.0}

    def train(spec, name):
        run_here("train_comet", spec, read, tmp_path / name / "comet.json")

    train(spec, "one")
    for name in ("two", "three"):
        train(short, name)
    assert len({files.file_digest(tmp_path / name / comet_checkpoint.CHECKPOINT) for name in ("two", "three")}) == 1
    card = files.read_json(tmp_path / "one" / "comet.json")
    trained = comet.MainComet(checkpoint=None)
    trained.prepare(ScoringJob("zh", tmp_path / "one"))
    assert card["digest"] == trained.digest
    assert min(card["spearman"][kind] for kind in ("drop", "repeat", "replace")) >= 0.75

    reference = "我的医生会把一台相机擦干净。"
    hypotheses = [reference, reference[:-3], reference[:-7], ""]
    sources = ["My doctor will clean a camera."] * 4
    scores = trained.segment_scores(sources, hypotheses, [reference] * 4)
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1.05 for score in scores)

    with pytest.raises(InputError, match="Spearman correlation"):  # and the accepted estimator stays
        train({**spec, "steps": 1, "width": 16}, "one")
    assert files.read_json(tmp_path / "one" / "comet.json") == card
    there = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock")
    assert there == ["en-de", "en-zh", "one", "three", "two"]
