"""Length ratios of training pairs: as their script measures them, and worked out by hand."""

from __future__ import annotations

import pytest
from run_rule import run_here

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.lengths.statistics import length_ratios, moments
from entropy_valley.model.checkpoint import load_tokenizer
from entropy_valley.model.families import FAMILIES

PAIRS = [
    {"id": "1", "source": "Tap Reset now.", "target": "Tap"},
    {"id": "2", "source": "Reset", "target": "Tap now Tap"},
]


def by_words(text, add_special_tokens, split_special_tokens):
    assert split_special_tokens and not add_special_tokens
    return {"input_ids": text.split()}


def test_by_hand():
    pairs = [{"source": "a b", "target": "a"}, {"source": "a", "target": "a b c"}, {"source": "a b", "target": "a b"}]
    percentiles = {"p10": 0.6, "p30": 0.8, "p50": 1.0, "p70": 1.8, "p90": 2.6}
    assert length_ratios(pairs, by_words) == pytest.approx({"median": 1.0, "mean": 1.5, "pairs": 3, **percentiles})
    assert length_ratios([*pairs, {"source": " ", "target": "a"}], by_words)["pairs"] == 3  # no tokens, no ratio
    with pytest.raises(InputError, match="no training pair has a source"):
        length_ratios([{"source": "", "target": "a"}], by_words)


def test_the_script_measures_each_tokenizer(checkpoints, tmp_path):
    pairs, out = tmp_path / "train.jsonl", tmp_path / "ratios.json"
    files.write_jsonl(pairs, PAIRS)
    spec = {"revision": 1, "tokenizers": {"mine": "llada", "other": "dream"}}
    how = {"mine": checkpoints / "llada", "other": checkpoints / "dream"}
    run_here("length_ratios", spec, {"pairs": pairs, "backbones": []}, out, how)
    result = files.read_json(out)
    for name, family in spec["tokenizers"].items():
        tokenizer = load_tokenizer(checkpoints / family, FAMILIES[family])
        counts = [[len(tokenizer(pair[side])["input_ids"]) for side in ("source", "target")] for pair in PAIRS]
        assert result[name] == {**moments([target / source for source, target in counts])}
