"""Decoders that change the canvas: rows, costs, the store and the signature."""

from __future__ import annotations

import pytest
import reference_variants
from bench import METHODS, Bench

from entropy_valley import files
from entropy_valley.revisions import DECODING

DAEDAL = {"ratios": 1.2, "eos_window": 1, "cap": 24}
DECODERS = [("daedal", {"eos_window": 1, "cap": 24}), ("rho_eos", {"cap": 24})]


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    monkeypatch.setitem(METHODS, "daedal", DAEDAL)
    files.write_jsonl(testset, files.read_jsonl(testset)[:4])
    return Bench(tmp_path, checkpoints, testset)


@pytest.mark.parametrize(("order", "settings"), DECODERS)
@pytest.mark.parametrize("method", ["ratio", "daedal"])
def test_a_row_is_the_plain_algorithms_and_counts_what_it_took(bench, llada, method, order, settings):
    rows, info = bench.decode(method, order=order, **settings)
    for pair, row in zip(files.read_jsonl(bench.testset), rows, strict=True):
        canvas, text = row["canvas"], bench.spec["prompt"].replace("{src}", pair["source"])
        prompt = llada.tokenizer(text, add_special_tokens=False)["input_ids"]
        plain = {"daedal": lambda *case: reference_variants.daedal(*case[:-1], 1, case[-1]), "rho_eos": None}[order]
        tokens, lengths = (plain or reference_variants.rho_eos)(llada, prompt, canvas["length"], 24)
        end = tokens.index(llada.eos_id) if llada.eos_id in tokens else len(tokens)
        assert (row["tokens"], row["length"]) == (tokens[:end], len(tokens))
        assert row["calls"] == canvas["calls"] + len(lengths)
        assert row["slots"] == canvas["slots"] + sum(lengths)
        assert row["passes"] == row["calls"] - (method == "daedal")  # its last probe is the decoder's first pass
    (ledger,) = bench.ledgers()
    assert ledger["tokens"] == sum(row["run_tokens"] for row in rows)
    assert ledger["rows"] == sum(row["head_rows"] for row in rows)
    assert info["within_steps"] == info["sentences"] == 4
    name = {"daedal": "daedal(cap=24,eos_window=1)", "rho_eos": "rho_eos(cap=24)"}[order]
    assert info["signature"]["decoder"] == f"engine r{DECODING}|{name}|float32"


def test_a_result_is_stored_under_its_name_and_settings_whatever_t_is(bench, no_model):
    first = bench.decode("ratio", order="daedal", eos_window=1, cap=24)
    bench.decode("ratio", order="daedal", eos_window=2, cap=24)
    bench.decode("ratio", order="rho_eos", cap=24)
    assert [ledger["computed"] for ledger in bench.ledgers()] == [4, 4, 4]
    no_model()
    assert bench.decode("ratio", order="daedal", eos_window=1, cap=24, steps=2) == first


def test_a_window_that_one_eos_never_fills_grows_to_the_end_of_the_context(bench, monkeypatch):
    monkeypatch.setitem(METHODS, "daedal", {"start": 64, "eos_window": 640})
    rows, _ = bench.decode("daedal", execution={"token_budget": 4096}, order="daedal", eos_window=640)
    for row in rows:
        canvas = row["canvas"]
        assert canvas["candidates"][:2] == [64, 72] and canvas["candidates"] == sorted(canvas["candidates"])
        assert canvas["length"] == canvas["candidates"][-1]
        assert 80 < canvas["length"] < 128  # of a context of 128 what the prompt leaves
        assert row["length"] == canvas["length"]  # no room to insert anything
