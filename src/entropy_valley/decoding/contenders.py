"""Several canvases of a sentence: which are decoded, and whose translation is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def contenders(canvas: Mapping[str, Any]) -> list[int]:
    """The lengths that are decoded for a canvas row: its own, unless it names several."""
    return canvas.get("contenders") or [canvas["length"]]


def winner(logprobs: Mapping[int, float | None]) -> int:
    """Of decoded lengths that of the largest mean log-probability at reveal time.

    The shorter one on a tie in the four decimals of :class:`~entropy_valley.engine.queue.Filled`; an empty text,
    which has none, comes last.
    """
    return min(logprobs, key=lambda length: (logprobs[length] is None, -(logprobs[length] or 0.0), length))
