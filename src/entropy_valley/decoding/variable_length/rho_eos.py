"""ρ-EOS: masks are added or dropped in each pass by the share of the masked slots that expect the EOS.

After "ρ-EOS: Training-free Bidirectional Variable-Length Control for Masked Diffusion LLMs" and its authors' code
(github.com/yjyddq/rho-EOS at 69992ca).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from pydantic import Field, NonNegativeInt

from entropy_valley.decoding.variable_length.base import ByBlock, Guess, Seen, Slots, confident, open_slots, reveal
from entropy_valley.engine.context import SHORTEST
from entropy_valley.settings import Share

_SEGMENT, _LARGEST = Fraction(1, 10), 8  # the width of a step of the gap, and the largest multiple


class RhoEos(ByBlock):
    """ρ-EOS: adds or drops masks in each pass, by the share of masked slots that expect the EOS.

    A pass reveals the same slots as DAEDAL's. Then ρ = slots whose guess is the EOS / all slots that were masked in
    that pass. If ρ is below ``low``, K masks are added; if it is above ``high``, K are dropped. K = ``masks`` · min(8,
    2^(s-1)) with s = ⌈gap / 0.1⌉. After ``adjustments`` passes the length does not change any more.

    The paper says that masks are appended and dropped at the end. Our reading: they are added before the first
    revealed EOS, as in the authors' code, because slots behind an EOS are no text. Only masks behind all revealed
    slots are dropped, and two slots always stay. The authors' code also cuts revealed tokens, and removes a canvas of
    fewer than K slots completely: their canvases start at 64 slots, but those of a translation are often shorter than
    K. Gaps are exact fractions here.
    """

    low: Share = Field(0.4, description="below this share of EOS guesses masks are added")
    high: Share = Field(0.6, description="above it masks are dropped")
    adjustments: NonNegativeInt = Field(64, description="passes that may change the length")

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> Slots:
        slots = reveal(seen, confident(seen, open_slots(seen, self.block), self.reveal_threshold))
        guesses = [one for one in seen if isinstance(one, Guess)]
        density = Fraction(sum(guess.token == eos_id for guess in guesses), len(guesses))
        low, high = Fraction(str(self.low)), Fraction(str(self.high))  # the config's decimals, exactly
        if step >= self.adjustments or low <= density <= high:
            return slots
        if density > high:
            return slots[: len(slots) - min(self._change(density - high), _droppable(slots))]
        end = next((slot for slot, one in enumerate(slots) if one and one.token == eos_id), len(slots))
        more = min(self._change(low - density), max(0, most - len(slots)))
        return [*slots[:end], *[None] * more, *slots[end:]]

    def _change(self, gap: Fraction) -> int:
        return self.masks * min(_LARGEST, 2 ** (math.ceil(gap / _SEGMENT) - 1))


def _droppable(slots: Slots) -> int:
    """Masks behind all revealed slots, two slots staying."""
    behind = sum(1 for _ in itertools.takewhile(lambda one: one is None, reversed(slots)))
    return max(0, min(behind, len(slots) - SHORTEST))
