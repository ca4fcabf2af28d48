"""ρ-EOS: masks are added or dropped in each pass by the share of the masked slots that expect the EOS.

After "ρ-EOS: Training-free Bidirectional Variable-Length Control for Masked Diffusion LLMs" and its authors' code
(github.com/yjyddq/rho-EOS at 69992ca).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from entropy_valley.decoding.variable_length.base import Guess, Seen, Slots, confident, open_slots, reveal
from entropy_valley.engine.context import SHORTEST

_SEGMENT, _LARGEST = Fraction(1, 10), 8  # the width of a step of the gap, and the largest multiple


class RhoEos:
    """One loop. A pass reveals what DAEDAL's would; then ρ = slots whose guess is the EOS / all slots that were masked
    in that pass. Below ``low`` K masks come in, above ``high`` K go; K = ``masks`` · min(8, 2^(s-1)) for
    s = ⌈gap / 0.1⌉, and after ``adjustments`` passes the length stays.

    The source says that masks are appended and dropped at the end. Our reading: they come in before the first revealed
    EOS, as in its code, for what stands behind an EOS is no text. Only masks are dropped, and only those behind all
    revealed slots; two slots stay. Its code cuts revealed tokens too, and a canvas of less than K to nothing: its
    canvases start at 64 slots, those of a translation are often shorter than K. Gaps are exact fractions here.
    """

    def __init__(
        self,
        low: float = 0.4,
        high: float = 0.6,
        masks: int = 8,
        adjustments: int = 64,
        reveal_threshold: float = 0.9,
        block: int = 32,
        cap: int = 2048,
    ) -> None:
        self._low, self._high = Fraction(str(low)), Fraction(str(high))  # the config's decimals, exactly
        self._masks, self._adjustments, self._reveal, self._block = masks, adjustments, reveal_threshold, block
        self.cap = cap

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> Slots:
        slots = reveal(seen, confident(seen, open_slots(seen, self._block), self._reveal))
        guesses = [one for one in seen if isinstance(one, Guess)]
        density = Fraction(sum(guess.token == eos_id for guess in guesses), len(guesses))
        if step >= self._adjustments or self._low <= density <= self._high:
            return slots
        if density > self._high:
            return slots[: len(slots) - min(self._change(density - self._high), _droppable(slots))]
        end = next((slot for slot, one in enumerate(slots) if one and one.token == eos_id), len(slots))
        more = min(self._change(self._low - density), max(0, most - len(slots)))
        return [*slots[:end], *[None] * more, *slots[end:]]

    def _change(self, gap: Fraction) -> int:
        return self._masks * min(_LARGEST, 2 ** (math.ceil(gap / _SEGMENT) - 1))


def _droppable(slots: Slots) -> int:
    """Masks behind all revealed slots, two slots staying."""
    behind = sum(1 for _ in itertools.takewhile(lambda one: one is None, reversed(slots)))
    return max(0, min(behind, len(slots) - SHORTEST))
