"""From training pairs to statistics to canvases, on a tiny random model."""

from __future__ import annotations

import json

import pytest
from bench import SCRIPTS, SELECTORS, Bench, run

from entropy_valley import files
from entropy_valley.canvas import fitting
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.decoding import reference

FITTED = {"cal": {"ratios": 1.2}, "ev_calibrated": {"ratios": [0.6, 0.8, 1.0, 1.05]}, "ev_prior": {"window": 1.0}}


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    for method, settings in FITTED.items():
        monkeypatch.setitem(SELECTORS, method, settings)
    return Bench(tmp_path, checkpoints, testset)


def measure(bench, *more, **settings):
    """The test set's pairs stand for training pairs."""
    path = bench.root / "length_statistics.json"
    spec = {**bench.spec, "pairs": 5, "bias_pairs": 2, **settings}
    run([SCRIPTS / "length_statistics.py", json.dumps(spec), *bench.common, "--out", path, *more])
    return path


def test_what_is_measured_is_what_the_reference_reads(bench, llada):
    value = files.read_json(measure(bench, pairs=1))
    rows = files.read_jsonl(bench.testset)
    counts = [
        [len(llada.tokenizer(row[side], add_special_tokens=False)["input_ids"]) for side in ("source", "target")]
        for row in rows
    ]
    assert value["ratio"] == fitting.ratio_moments([tuple(pair) for pair in counts])  # all of the corpus, no model
    length = counts[0][1] + 1
    prompt = llada.tokenizer(bench.spec["prompt"].replace("{src}", rows[0]["source"]), add_special_tokens=False)
    entropies, _ = reference.read(llada, prompt["input_ids"], [llada.mask_id] * length)
    assert value["expected_entropy"]["shortest"] == length
    assert value["expected_entropy"]["values"] == pytest.approx([sum(entropies[:-1]) / (length - 1)], abs=1e-5)
    assert value["signature"]["data_digest"] == files.file_digest(bench.testset)


def test_a_pool_is_measured_as_if_it_were_the_corpus(bench):
    whole, rows = bench.testset, files.read_jsonl(bench.testset)
    measured = [files.read_json(measure(bench, limit=4))]
    bench.testset.write_text("".join(whole.read_text(encoding="utf-8").splitlines(keepends=True)[:4]), encoding="utf-8")
    measured.append(files.read_json(measure(bench)))
    assert len(rows) > 4
    for value in measured:
        del value["signature"]
    assert measured[0] == measured[1]


def test_the_bias_leaves_out_lengths_near_the_true_one_and_beyond_the_context(bench, llada):
    points = files.read_json(measure(bench))["confidence_bias"]["points"]
    rows = files.read_jsonl(bench.testset)[:2]
    true = [len(llada.tokenizer(row["target"], add_special_tokens=False)["input_ids"]) + 1 for row in rows]
    canvases = {point["length"]: point["canvases"] for point in points}
    for length in fitting.LENGTHS[:-2]:
        assert canvases.get(length, 0) == sum(abs(length - one) > 4 for one in true)
    assert 128 not in canvases  # the context, which holds the prompt too


@pytest.mark.parametrize("method", FITTED)
def test_canvases_from_statistics(bench, method):
    path = measure(bench)
    rows = bench.canvas(method, "--statistics", path)
    statistics = LengthStatistics.read(path)
    assert statistics.ratio_std > 0
    for row in rows:
        assert row["calls"] == len(row["candidates"]) and row["slots"] == sum(row["candidates"])
        assert row["scores"][row["candidates"].index(row["length"])] == min(row["scores"])


def test_without_its_statistics_a_method_says_so(bench, capsys):
    with pytest.raises(SystemExit):
        bench.canvas("cal")
    assert "length method 'cal': needs length statistics" in capsys.readouterr().err


def test_a_second_run_loads_no_model_and_writes_the_same_bytes(bench, no_model):
    first = measure(bench).read_bytes()
    no_model()
    assert measure(bench).read_bytes() == first
