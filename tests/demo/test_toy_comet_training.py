from __future__ import annotations

import math

import pytest
from run_rule import run_here

from entropy_valley import files
from entropy_valley.demo import grammar, toy_comet
from entropy_valley.demo.settings import Estimator
from entropy_valley.demo.toy_comet import check, draw_pairs, examples
from entropy_valley.errors import InputError
from entropy_valley.scoring import comet, comet_checkpoint
from entropy_valley.scoring.metrics import ScoringJob

CONFIG = Estimator(seed=1, steps=4, pairs=5, corruptions=3)


def rows(count, seed, target="zh"):
    return [{"source": one.en, "target": getattr(one, target)} for one in grammar.generate(count, seed)]


@pytest.mark.parametrize("weak", [0.749, math.nan])
def test_the_gate(weak):
    good = dict.fromkeys(("drop", "repeat", "replace"), 0.75) | {"swap": 0.1}
    check(good, 0.75)
    with pytest.raises(InputError, match=r"below 0\.75 on held-out sentences: {'repeat'"):
        check(good | {"repeat": weak}, 0.75)


def test_examples_are_a_function_of_the_seed():
    corpora = {"en-zh": rows(30, 1), "en-de": rows(30, 1, "de")}
    pairs = draw_pairs(corpora, CONFIG.steps * CONFIG.pairs, seed=3)
    assert {pair.direction for pair in pairs} == set(corpora)
    batches = examples(pairs, CONFIG)
    assert batches == examples(pairs, CONFIG)
    assert [len(batch) for batch in batches] == [CONFIG.pairs] * CONFIG.steps
    assert all(len(one.hypotheses) == len(one.qualities) == CONFIG.corruptions for batch in batches for one in batch)
    for batch in batches:
        for one in batch:
            for text, quality in zip(one.hypotheses, one.qualities, strict=True):
                assert (text == one.pair.target) == (quality == toy_comet.HIGHEST)


@pytest.mark.slow
def test_training_makes_a_metric(tmp_path, monkeypatch):
    read = {"train": [], "dev": []}
    for direction, target in (("en-zh", "zh"), ("en-de", "de")):
        for split, count, seed in (("train", 800, 1), ("dev", 60, 2)):
            read[split].append(tmp_path / direction / f"{split}.jsonl")
            files.write_jsonl(read[split][-1], rows(count, seed, target))
    spec = {"revision": 1, "seed": 1, "steps": 160, "width": 64}
    short = {**spec, "steps": 10, "minimum_spearman": -1.0}

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
    assert min(card["spearman"]["all"][kind] for kind in ("drop", "repeat", "replace")) >= 0.75

    reference = "我的医生会把一台相机擦干净。"
    hypotheses = [reference, reference[:-3], reference[:-7], ""]
    sources = ["My doctor will clean a camera."] * 4
    scores = trained.segment_scores(sources, hypotheses, [reference] * 4)
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1.05 for score in scores)

    with monkeypatch.context() as patch:
        patch.setattr(toy_comet, "new_model", lambda *_: pytest.fail("it was trained again"))
        train(spec, "one")
        train(short, "two")

    with pytest.raises(InputError, match="Spearman correlation"):  # and the accepted estimator stays
        train({**spec, "steps": 1}, "one")
    assert files.read_json(tmp_path / "one" / "comet.json") == card
    there = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock")
    assert there == ["en-de", "en-zh", "one", "three", "two"]
