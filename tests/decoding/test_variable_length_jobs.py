"""Decoders that change the canvas: what a row counts, and the store."""

from __future__ import annotations

import pytest
import reference_variants
from bench import METHODS, Bench

from entropy_valley import files

SETTINGS = {"eos_window": 1, "cap": 24}


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    monkeypatch.setitem(METHODS, "daedal", {"ratios": 1.2, **SETTINGS})
    files.write_jsonl(testset, files.read_jsonl(testset)[:4])
    return Bench(tmp_path, checkpoints, testset)


def test_a_row_is_the_plain_algorithms_and_counts_what_it_took(bench, llada):
    """Its last probe is the decoder's first pass. With another method: golden.json."""
    rows, info = bench.decode("daedal", order="daedal", **SETTINGS)
    for pair, row in zip(files.read_jsonl(bench.testset), rows, strict=True):
        canvas, text = row["canvas"], bench.spec["prompt"].replace("{src}", pair["source"])
        prompt = llada.tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens, lengths = reference_variants.daedal(llada, prompt, canvas["length"], 1, 24)
        end = tokens.index(llada.eos_id) if llada.eos_id in tokens else len(tokens)
        assert (row["tokens"], row["length"]) == (tokens[:end], len(tokens))
        assert row["calls"] == row["passes"] + 1 == canvas["calls"] + len(lengths)
        assert row["slots"] == canvas["slots"] + sum(lengths)
    (ledger,) = bench.ledgers()
    assert ledger["tokens"] == sum(row["run_tokens"] for row in rows)
    assert ledger["rows"] == sum(row["head_rows"] for row in rows)
    assert info["within_steps"] == info["sentences"] == 4


def test_a_result_is_stored_under_its_name_and_settings_whatever_t_is(bench, no_model):
    first = bench.decode("ratio", order="daedal", **SETTINGS)
    bench.decode("ratio", order="daedal", eos_window=2, cap=24)
    bench.decode("ratio", order="rho_eos", cap=24)
    assert [ledger["computed"] for ledger in bench.ledgers()] == [4, 4, 4]
    no_model()
    assert bench.decode("ratio", order="daedal", **SETTINGS, steps=2) == first
