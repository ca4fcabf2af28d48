"""The token counts of a test set, as the checkpoint's tokenizer splits it."""

from __future__ import annotations

from run_rule import run_here

from entropy_valley import files
from entropy_valley.results import record_of


def test_tokens_of_both_sides_without_special_ones(tmp_path, checkpoints, testset, llada):
    spec, out = {"backbone": "mine", "family": "llada", "revision": 1}, tmp_path / "tokens.jsonl"
    backbone = checkpoints / "llada"
    run_here("tokens", spec, {"testset": testset}, out, {"backbone": backbone})
    count = lambda text: len(llada.tokenizer(text, add_special_tokens=False)["input_ids"])  # noqa: E731
    assert files.read_jsonl(out) == [
        {"id": row["id"], "source_tokens": count(row["source"]), "target_tokens": count(row["target"])}
        for row in files.read_jsonl(testset)
    ]
    assert record_of(out).inputs.keys() == {str(testset)}
