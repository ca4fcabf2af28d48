"""What a system's outputs look like before any metric: how many are empty, how long they are."""

from __future__ import annotations

from collections.abc import Sequence


def empty_rate(texts: Sequence[str]) -> float:
    """The share of texts that hold nothing but white space."""
    return sum(not text.strip() for text in texts) / len(texts)


def mean_characters(texts: Sequence[str]) -> float:
    """Mean number of characters (Unicode code points), the empty texts included."""
    return sum(map(len, texts)) / len(texts)
