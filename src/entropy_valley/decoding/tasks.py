"""What goes into the engine and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from entropy_valley.canvas.reading import Reading


@dataclass(frozen=True)
class Canvas:
    """``length`` masks behind a prompt, the slots to reveal at each step that reveals any, and perhaps step 1.

    ``start`` is the stored reading of the all-mask canvas: the pass of the first step is then not run again.
    """

    prompt: Sequence[int]
    length: int
    counts: Sequence[int] = ()
    start: Reading | None = None

    @property
    def size(self) -> int:
        """Tokens of prompt and canvas: what one pass over it costs."""
        return len(self.prompt) + self.length


@dataclass(frozen=True)
class Filled:
    """A decoded canvas.

    ``tokens``: all L ids; the mask id where the text was settled before the slot was reached. ``text``: how many
    come before the first EOS. ``logprob``: the mean, over those, of each token's log-probability in the pass that
    revealed it (nats, four decimals); None for an empty text. ``passes``: how many the canvas needs by itself, the
    all-mask one included, wherever that was run.
    """

    tokens: list[int]
    text: int
    logprob: float | None
    passes: int

    def to_json(self) -> dict[str, Any]:
        return vars(self)
