"""DAEDAL's second stage: masks are inserted where the model is least sure, while it expects no EOS.

After "Beyond Fixed: Training-Free Variable-Length Denoising for Diffusion Large Language Models" (github.com/
Li-Jinsong/DAEDAL). Its first stage is a length method, :mod:`entropy_valley.lengths.published`.
"""

from __future__ import annotations

import math

from pydantic import Field, PositiveInt

from entropy_valley.decoding.variable_length.base import ByBlock, Guess, Seen, Slots, confident, open_slots, reveal
from entropy_valley.lengths.published import eos_confidence
from entropy_valley.settings import Share


class Daedal(ByBlock):
    """The second stage of DAEDAL: inserts masks where the model is least sure, while it expects no EOS.

    Each pass works inside the first unfinished block of ``block`` slots. It reveals every guess above
    ``reveal_threshold``, or else the best one. While the EOS confidence over ``eos_window`` slots is below
    ``eos_threshold``, the least confident of the slots that stay masked becomes ``masks`` masks, if its confidence is
    below ``insertion_threshold``.

    Ours: a revealed EOS counts as p(EOS) = 1, and other revealed slots expect no EOS. The first slot wins a tie. Close
    to the largest length, an insertion has only as many masks as fit.
    """

    eos_window: PositiveInt = Field(32, description="E: slots that the EOS confidence is a mean over")
    eos_threshold: Share = Field(0.9, description="below this EOS confidence masks are inserted")
    insertion_threshold: Share = Field(0.1, description="only a slot whose guess is below it becomes several masks")

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> Slots:
        among = open_slots(seen, self.block)
        sure = confident(seen, among, self.reveal_threshold)
        slots = reveal(seen, sure)
        unsure = [slot for slot in among if slot not in sure and seen[slot].chance < self.insertion_threshold]
        if unsure and self._confidence(seen, eos_id) < self.eos_threshold:
            weakest = min(unsure, key=lambda slot: seen[slot].logprob)
            slots[weakest : weakest + 1] = [None] * max(1, min(self.masks, most - len(slots) + 1))
        return slots

    def _confidence(self, seen: Seen, eos_id: int) -> float:
        expected = [one for one in seen if one.token == eos_id]
        chances = [math.exp(one.eos_logprob) if isinstance(one, Guess) else 1.0 for one in expected]
        return eos_confidence(chances, self.eos_window)
