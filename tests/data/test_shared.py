"""A slow source is read once for a direction and its reverse, and each gets what a pass of its own would give it."""

from __future__ import annotations

import json
import threading

import pytest
from run_rule import run_here

from entropy_valley.data import build
from entropy_valley.data.sources import SOURCES
from entropy_valley.data.sources.huggingface import HuggingFace

OUTPUTS = {"train": "train.jsonl", "dev": "dev.jsonl", "report": "corpus.json"}
SPEC = {
    "revision": 1,
    "seed": 1,
    "source": {"name": "huggingface", "dataset": "wmt/wmt19", "subset": "zh-en"},
    "train": 30,
    "dev": 5,
    "filters": {"en": {"words": [2, 5]}, "zh": {"characters": [2, 4]}},
}


@pytest.fixture
def passes(monkeypatch):
    """A stand-in for the data set; a list that grows with every pass over it."""
    begun = []

    def rows(source):
        begun.append(source.dataset)
        for number in range(200):
            english = " ".join(["word"] * (number % 7) + [str(number)])
            yield {"translation": {"en": f" {english} ", "zh": "字" * (number % 5 + 1) + str(number % 50)}}

    monkeypatch.setattr(HuggingFace, "_rows", rows)
    monkeypatch.setattr(HuggingFace, "origin", lambda *_: {})
    return begun


def draw(root, direction, both_ways=False, **over):
    """The bytes of the files that the job of a direction writes."""
    out = {option: root / direction / name for option, name in OUTPUTS.items()}
    how = {"folder": None, "rows": None, "commits": None, "confirm": False, "both_ways": both_ways}
    run_here("corpus", SPEC | {"direction": direction} | over, {"own": [], "dataset": []}, out, how)
    return [path.read_bytes() for path in out.values()]


def test_one_pass_serves_both_directions_with_the_bytes_of_two(tmp_path, passes):
    apart = [draw(tmp_path / "apart", direction) for direction in ("en-zh", "zh-en")]
    assert len(passes) == 2
    build = [draw(tmp_path, "en-zh", both_ways=True), draw(tmp_path, "zh-en", both_ways=True)]
    assert len(passes) == 3
    assert build == apart
    report = json.loads(build[1][2])
    assert report["direction"] == "zh-en" and report["counts"]["filtered"] > 0
    assert not list(tmp_path.glob("*/drawn.jsonl"))


def test_a_finished_direction_gets_no_other_draw(tmp_path, passes):
    for _ in range(2):
        draw(tmp_path, "en-zh", both_ways=True)
        draw(tmp_path, "zh-en", both_ways=True)
    assert not list(tmp_path.glob("*/drawn.jsonl"))


def test_a_draw_by_other_params_is_not_taken(tmp_path, passes):
    draw(tmp_path, "en-zh", both_ways=True, seed=2)
    assert draw(tmp_path, "zh-en", both_ways=True) == draw(tmp_path / "apart", "zh-en")


def test_jobs_that_start_together_read_once(tmp_path, passes):
    found, together = {}, threading.Barrier(2)

    def job(direction):
        together.wait()
        with build.shared_corpus(
            SPEC | {"direction": direction}, SOURCES, tmp_path / direction / "corpus.json"
        ) as drawn:
            found[direction] = drawn[2]["direction"]

    jobs = [threading.Thread(target=job, args=(direction,)) for direction in ("en-zh", "zh-en")]
    for thread in jobs:
        thread.start()
    for thread in jobs:
        thread.join()
    assert found == {"en-zh": "en-zh", "zh-en": "zh-en"}
    assert len(passes) == 1
