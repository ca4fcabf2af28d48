"""From training pairs to a length head to canvases and translations, on a tiny random model."""

from __future__ import annotations

import json

import pytest
from bench import SCRIPTS, SELECTORS, Bench, run

from entropy_valley import files
from entropy_valley.backbone.prompt import Prompt
from entropy_valley.canvas.length_head import LengthHead
from entropy_valley.canvas.length_methods import make_method
from entropy_valley.decoding.translator import Translator
from entropy_valley.errors import InputError

TRAINING = {"pairs": 9, "epochs": 3, "learning_rate": 0.1, "batch": 4, "longest": 12}


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    monkeypatch.setitem(SELECTORS, "length_head", {"beam": 1})
    monkeypatch.setitem(SELECTORS, "length_head_beam5", {"selector": "length_head", "beam": 5})
    return Bench(tmp_path, checkpoints, testset)


def train(bench, seed=1, **settings):
    """The test set's pairs stand for training and dev pairs; the folder of the head and its report."""
    folder = bench.root / f"head{seed}"
    spec = {**bench.spec, "seed": seed, "training": TRAINING | settings}
    outputs = ["--out", folder / "head.safetensors", "--info", folder / "head.json"]
    run([SCRIPTS / "length_head.py", json.dumps(spec), *bench.common, "--dev", bench.testset, *outputs])
    return folder


def test_the_report_is_of_training_and_dev_pairs(bench):
    folder = train(bench)
    info = files.read_json(folder / "head.json")
    assert (info["train"]["pairs"], info["dev"]["pairs"]) == (9, 12)
    assert 0 <= info["dev"]["accuracy"] <= 1 and info["dev"]["mae"] >= 0
    assert info["signature"]["dev_digest"] == files.file_digest(bench.testset)
    assert LengthHead.read(folder / "head.safetensors").weight.shape == (11, 32)  # 2 to 12 slots
    assert bench.ledgers()[0]["rows"] == 0


def test_a_second_run_writes_the_same_bytes(bench):
    weights = [(train(bench, seed) / "head.safetensors").read_bytes() for seed in (1, 1, 2)]
    assert weights[0] == weights[1] != weights[2]


def test_canvases_and_translations_from_a_head(bench, no_model):
    head = train(bench) / "head.safetensors"
    first = bench.canvas("length_head", "--length-head", head)
    bench.decode("length_head")
    greedy = files.read_jsonl(bench.out)
    rows = bench.canvas("length_head_beam5", "--length-head", head)
    bench.decode("length_head_beam5")
    translations = files.read_jsonl(bench.out)
    for one, row, plain, translation in zip(first, rows, greedy, translations, strict=True):
        assert (row["length"], row["calls"], row["slots"]) == (one["length"], 1, 0)
        assert row["candidates"] == row["contenders"] and len(row["contenders"]) == 5
        assert row["scores"][row["candidates"].index(row["length"])] == min(row["scores"])
        assert "contenders" not in one and plain["calls"] == 1 + 8 and plain["slots"] == 8 * plain["length"]
        assert translation["calls"] == 1 + 5 * 8 and translation["slots"] == 8 * sum(row["contenders"])
        assert (translation["logprob"] or -99) >= (plain["logprob"] or -99)
    # Training, then canvas and decode of each: the second canvas job shares all predictions, its decode the first's.
    _, canvas, decode, again, more = bench.ledgers()
    assert (canvas["computed"], again["computed"], more["computed"]) == (12, 0, 5 * 12 - decode["computed"])
    needed = sum(row["run_tokens"] for row in greedy)
    assert canvas["tokens"] + decode["tokens"] == needed and canvas["rows"] == 0
    assert decode["rows"] == sum(row["head_rows"] for row in greedy)
    no_model()
    bench.canvas("length_head", "--length-head", head)


def test_another_heads_predictions_are_not_taken(bench):
    for seed in (1, 2):
        bench.canvas("length_head", "--length-head", train(bench, seed) / "head.safetensors")
    assert [ledger["computed"] for ledger in bench.ledgers()] == [1, 12, 1, 12]


def test_without_its_head_a_method_says_so(bench, capsys):
    with pytest.raises(SystemExit):
        bench.canvas("length_head")
    assert "length method 'length_head': needs a length head" in capsys.readouterr().err


def test_the_translator_reads_the_same_head(bench, llada):
    path = train(bench) / "head.safetensors"
    rows = bench.canvas("length_head", "--length-head", path)
    sources = [row["source"] for row in files.read_jsonl(bench.testset)]
    prompt, selector = Prompt(bench.spec["prompt"], llada.tokenizer), make_method("length_head", {})
    translator = Translator(llada, prompt, selector, steps=8, length_head=LengthHead.read(path))
    bench.decode("length_head")
    texts = [row["hypothesis"] for row in files.read_jsonl(bench.out)]
    translations = translator.translate(sources)
    assert [(one.text, one.length) for one in translations] == list(
        zip(texts, [row["length"] for row in rows], strict=True)
    )
    with pytest.raises(InputError, match="needs a length head"):
        Translator(llada, prompt, selector).translate(sources)


def test_a_benchmark_reads_the_prompts_under_the_clock(bench):
    head, path = train(bench) / "head.safetensors", bench.root / "latency.json"
    denoising = {"order": "med", "order_settings": {}, "steps": 8, "schedule": "llada"}
    spec = {**bench.spec, **denoising, "method": "length_head", "selector": SELECTORS["length_head"]}
    spec |= {"sentences": 100, "repeats": 1, "seed": 1}
    run([SCRIPTS / "latency.py", json.dumps(spec), *bench.common, "--no-store", "--out", path, "--length-head", head])
    bench.canvas("length_head", "--length-head", head)
    bench.decode("length_head")
    info = files.read_json(bench.info)
    assert files.read_json(path)["single"]["passes"] == info["passes"] / info["sentences"]
