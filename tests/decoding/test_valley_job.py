"""The diagnostic of all-mask canvases and the control that deals canvases anew, on a tiny random model."""

from __future__ import annotations

import pytest
from bench import METHODS, Bench

from entropy_valley import files
from entropy_valley.decoding import reference
from entropy_valley.lengths.base import candidate_length


@pytest.fixture
def bench(tmp_path, checkpoints, testset):
    return Bench(tmp_path, checkpoints, testset)


def read(bench, sentences=500):
    return bench.diagnose("valley", offset=2, ratios=[0.6, 0.8, 1.0, 1.05], sentences=sentences, seed=1)


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
    from entropy_valley.data.sampling import draw

    rows = files.read_jsonl(bench.testset)
    return rows[draw(rows, 1, 1, "keyed_hash")[0]] == row


def test_evs_canvases_are_not_probed_again(bench, no_model):
    read(bench)
    no_model()
    bench.canvas("ev")  # the same grid
    assert bench.ledgers()[-1]["computed"] == 0


def test_reassigned_canvases_need_no_probes_and_keep_the_ratios(bench):
    """The method that they come from is no cell of the set."""
    given, rows = bench.canvas("ev"), {}
    for within in ("all", "deciles"):
        settings = {"method": "reassigned", "of": "ev", "seed": 1, "within": within}
        spec = bench.set_of("dealt", chosen=settings)
        spec["methods"]["ev"] = METHODS["ev"]
        rows[within] = [row["canvas"] for row in bench.write(spec)[0]]
        assert all(row["candidates"] == [row["length"]] and not row["calls"] for row in rows[within])
    assert [row["length"] for row in rows["all"]] != [row["length"] for row in given]
    # A decile of twelve sentences has one or two.
    assert rows["all"] != rows["deciles"]
