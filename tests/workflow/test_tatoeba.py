"""Human sentences through the whole workflow: Tatoeba pairs, and the WMT22 files as a second test set."""

from __future__ import annotations

import os

import pytest
from workspace import Workspace

from entropy_valley import files, results
from entropy_valley.config.matrix import Cell, Run

DATA = os.environ.get("ENTROPY_VALLEY_DATA", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA, reason="ENTROPY_VALLEY_DATA names no folder of tatoeba/ and wmt22/"),
]

SMALL = {
    "results": "results",
    "matrix": {"seeds": [1], "steps": [8]},
    "tables": {"steps": 8, "studies": []},
    "valley": {"backbones": []},
    "sources": {"tatoeba": {"folder": f"{DATA}/tatoeba"}, "wmt22": {"folder": f"{DATA}/wmt22"}},
    "corpus": {"train": 400, "dev": 40, "test_limit": 50},
    "backbones": {
        "llada-tiny": {
            "pretraining": {"steps": 40, "batch": 16, "width": 32, "layers": 2, "heads": 2, "kv_heads": 2, "ffn": 64}
        }
    },
    "training": {"max_steps": 5, "global_batch": 16},
    "scoring": {"comet": {"training": {"steps": 30, "width": 32, "minimum_spearman": -1.0}}},
    "analysis": {"resamples": 200},
}


def test_fifty_sentences_of_each_test_set(tmp_path):
    Workspace(tmp_path, "config/tatoeba.yaml", SMALL, real=True).run("--cores", "2", "results/tables/main.md")
    corpus = tmp_path / "results/corpus/en-de"
    sources = {row["source"] for row in files.read_jsonl(corpus / "train.jsonl")}
    assert not sources & {row["source"] for row in files.read_jsonl(corpus / "test/tatoeba.jsonl")}
    of_run = tmp_path / "results/en-de/llada-tiny/seed1/matrix"
    for testset in ("tatoeba", "wmt22"):
        cell = Cell.named(Run("en-de", "llada-tiny", 1), testset, "ev/med-T8")
        assert len(results.rows(of_run / results.TRANSLATIONS, cell)) == 50
        assert results.entry(of_run / results.SCORES, cell)["sentences"] == 50
    table = (tmp_path / "results/tables/main.md").read_text()
    assert "tatoeba" in table
    assert "wmt22" in table
