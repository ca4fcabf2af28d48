"""Length ratios of training pairs: as their script measures them, and worked out by hand."""

from __future__ import annotations

import pytest

from entropy_valley.errors import InputError
from entropy_valley.lengths.statistics import length_ratios


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
