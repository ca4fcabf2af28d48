"""Several canvases of a sentence: which are decoded, and whose translation is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entropy_valley.engine.queue import Decoded


def contenders(canvas: Mapping[str, Any]) -> list[int]:
    """The lengths that are decoded for a canvas row: its own, unless it names several."""
    return canvas.get("contenders") or [canvas["length"]]


def winner(decoded: Mapping[int, Decoded]) -> Decoded:
    """Of canvases decoded from so many masks the one of the largest mean log-probability at reveal time.

    The shorter one on a tie in four decimals; an empty text, which has no log-probability, comes last.
    """
    return min(decoded.items(), key=lambda item: (item[1].logprob is None, -(item[1].logprob or 0.0), item[0]))[1]
