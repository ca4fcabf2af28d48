"""The diagnostic of all-mask canvases and the control that deals canvases anew, on a tiny random model."""

from __future__ import annotations

import json

import pytest
from bench import SCRIPTS, Bench, run, run_without_torch

from entropy_valley import files
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.decoding import reference


@pytest.fixture
def bench(tmp_path, checkpoints, testset):
    return Bench(tmp_path, checkpoints, testset)


def read(bench, **settings):
    spec = {**bench.spec, "offset": 2, "ratios": [0.6, 0.8, 1.0, 1.05], "sentences": 500, "seed": 1, **settings}
    path = bench.root / "valley.json"
    run([SCRIPTS / "valley.py", json.dumps(spec), *bench.common, "--out", path])
    return files.read_json(path)


def tokens(llada, text):
    return llada.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_the_curves_are_what_the_reference_reads(bench, llada):
    value = read(bench, sentences=1)
    (row,) = [row for row in files.read_jsonl(bench.testset) if _drawn(bench, row)]
    length = len(tokens(llada, row["target"])) + 1
    prompt = tokens(llada, bench.spec["prompt"].replace("{src}", row["source"]))
    (centre,) = [point for point in value["offsets"] if point["at"] == 0]
    entropies, _ = reference.read(llada, prompt, [llada.mask_id] * length)
    assert centre["mean"] == pytest.approx(sum(entropies[:-1]) / (length - 1), abs=1e-5)
    assert (centre["mean_length"], centre["sentences"]) == (length, 1)
    source = value["source_tokens"][row["id"]]
    assert source == len(tokens(llada, row["source"]))
    assert [point["mean_length"] for point in value["ratios"]] == [
        candidate_length(ratio, source) for ratio in (0.6, 0.8, 1.0, 1.05)
    ]
    assert value["signature"]["data_digest"] == files.file_digest(bench.testset)


def _drawn(bench, row):
    from entropy_valley.corpus.sampling import draw

    rows = files.read_jsonl(bench.testset)
    return rows[draw(rows, 1, 1, "keyed_hash")[0]] == row


def test_evs_canvases_are_not_probed_again(bench, no_model):
    read(bench)
    no_model()
    bench.canvas("ev")  # the same grid
    assert bench.ledgers()[-1]["computed"] == 0


def test_reassigned_canvases_need_no_model_and_keep_the_ratios(bench):
    given = bench.canvas("ev")
    rows = {within: reassigned(bench, within) for within in ("all", "deciles")}
    for dealt in rows.values():
        assert [row["id"] for row in dealt] == [row["id"] for row in given]
        assert all(row["candidates"] == [row["length"]] and not row["calls"] for row in dealt)
    assert [row["length"] for row in rows["all"]] != [row["length"] for row in given]
    # A decile of twelve sentences has one or two.
    assert rows["all"] != rows["deciles"]


def reassigned(bench, within):
    settings = {"selector": "reassigned", "of": "ev", "seed": 1, "within": within}
    spec, out = {**bench.spec, "method": "ev_reassigned_1", "selector": settings}, bench.root / f"{within}.jsonl"
    run_without_torch(
        [SCRIPTS / "reassigned_canvas.py", json.dumps(spec), *bench.common, "--of", bench.canvases, "--out", out]
    )
    return files.read_jsonl(out)
