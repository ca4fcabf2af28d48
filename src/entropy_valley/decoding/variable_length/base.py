"""What variable-length decoders work on: the canvas slot by slot. And what they share."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from pydantic import Field, PositiveInt

from entropy_valley import plugins
from entropy_valley.settings import Section, Share


class Revealed(NamedTuple):
    """A slot's token, and its log-probability in the pass that revealed it (nats)."""

    token: int
    logprob: float


class Guess(NamedTuple):
    """The model's prediction for a masked slot: the most probable token, its log-probability and that of the EOS."""

    token: int
    logprob: float
    eos_logprob: float

    @property
    def chance(self) -> float:
        return math.exp(self.logprob)


Slots = list[Revealed | None]  # None: a mask
Seen = Sequence[Revealed | Guess]  # the canvas after a pass: a guess for each mask


class VariableLengthDecoder(Protocol):
    """Denoises a canvas whose length may change, without a step budget T.

    ``cap``: most slots it may grow to; the backbone's context may leave fewer.
    """

    cap: int

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> Slots:
        """The canvas after pass ``step`` (from 0). At least one more slot is revealed. The canvas never grows beyond
        ``most`` slots."""
        ...


def advanced(decoder: VariableLengthDecoder, seen: Seen, eos_id: int, step: int, most: int, about: str) -> Slots:
    """The canvas that a decoder returns. ``about`` names the sentence in errors.

    Raises InputError where a user's own decoder reveals no slot or goes beyond ``most`` slots.
    """
    if not plugins.is_own(decoder):
        return decoder.advance(seen, eos_id, step, most)
    with plugins.calling(decoder, "advance", about):
        answer = decoder.advance(seen, eos_id, step, most)
        slots = [one and Revealed(int(one.token), float(one.logprob)) for one in answer]
    same = slots == [one if isinstance(one, Revealed) else None for one in seen]
    if not slots or same or len(slots) > max(most, len(seen)):
        problem = "reveals no slot" if same else f"returned {len(slots)} slots, of at most {most}"
        remedy = "Return a Revealed token or None, a mask, for each slot, at least one of `seen` newly revealed."
        raise plugins.refused(decoder, "advance", about, problem, remedy)
    return slots


class ByBlock(Section):
    """A base with the settings of decoders that finish one block of slots after another."""

    reveal_threshold: Share = Field(0.9, description="every guess above it is revealed, else the best one")
    masks: PositiveInt = Field(8, description="masks of one insertion")
    block: PositiveInt = Field(32, description="slots of a block; the next one waits until it has no mask")
    cap: PositiveInt = Field(2048, description="most slots; the backbone's context may leave fewer")


def reveal(seen: Seen, chosen: Collection[int]) -> Slots:
    """The canvas with the guesses of the ``chosen`` slots revealed."""
    return [
        one if isinstance(one, Revealed) else Revealed(one.token, one.logprob) if slot in chosen else None
        for slot, one in enumerate(seen)
    ]


def open_slots(seen: Seen, block: int) -> list[int]:
    """The masked slots of the first unfinished block of ``block`` slots."""
    masked = [slot for slot, one in enumerate(seen) if isinstance(one, Guess)]
    return [slot for slot in masked if slot // block == masked[0] // block]


def confident(seen: Seen, among: Sequence[int], threshold: float) -> set[int]:
    """Those of the masked slots ``among`` whose guess has a probability above ``threshold``. If there is none, the slot
    of the best guess; the first one wins a tie."""
    sure = {slot for slot in among if seen[slot].chance > threshold}
    return sure or {max(among, key=lambda slot: seen[slot].logprob)}
