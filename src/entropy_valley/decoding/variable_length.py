"""Decoders without a step budget. They may change the length of a canvas: DAEDAL's second stage, ρ-EOS, and LLaDA's
own, which drops its end. A confidence threshold leaves it as it is.

A new one is a class and a line in ``VARIABLE_LENGTH``, or a user's ``module:Class``. It works on the canvas slot by
slot: after each pass it gets what is revealed and the guesses, and returns the next canvas.

DAEDAL is after "Beyond Fixed: Training-Free Variable-Length Denoising for Diffusion Large Language Models"
(github.com/Li-Jinsong/DAEDAL). Its first stage is a length method, :mod:`entropy_valley.lengths.baselines`.
ρ-EOS is after "ρ-EOS: Training-free Bidirectional Variable-Length Control for Masked Diffusion LLMs" and its authors'
code (github.com/yjyddq/rho-EOS at 69992ca).
"""

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from pydantic import Field, NonNegativeInt, PositiveInt

from entropy_valley import plugins
from entropy_valley.decoding.canvas import SHORTEST
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


GrowingCanvas = list[Revealed | None]  # None: a mask

Seen = Sequence[Revealed | Guess]  # the canvas after a pass: a guess for each mask


class VariableLengthDecoder(Section):
    """Denoises a canvas whose length may change, without a step budget T. Its fields are its settings."""

    cap: PositiveInt = Field(default=2048, description="most slots; the backbone's context may leave fewer")

    @property
    def starts_masked(self) -> bool:
        """Whether :meth:`first` has masks alone, so that a probe of that length is its first pass."""
        return True

    def first(self, length: int, eos_id: int, most: int) -> GrowingCanvas:
        """The canvas before the first pass, from the ``length`` that was chosen."""
        return [None] * length

    @abstractmethod
    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> GrowingCanvas:
        """The canvas after pass ``step`` (from 0). At least one more slot is revealed. The canvas never grows beyond
        ``most`` slots."""


def advanced(
    decoder: VariableLengthDecoder, seen: Seen, eos_id: int, step: int, most: int, about: str
) -> GrowingCanvas:
    """The canvas that a decoder returns. ``about`` names the sentence in errors.

    Raises InputError where a user's own decoder reveals no slot or goes beyond ``most`` slots.
    """
    if not plugins.is_own(decoder):
        return decoder.advance(seen, eos_id, step, most)
    with plugins.calling(decoder, "advance", about):
        answer = decoder.advance(seen, eos_id, step, most)
        slots = [slot and Revealed(int(slot.token), float(slot.logprob)) for slot in answer]
    same = slots == [slot if isinstance(slot, Revealed) else None for slot in seen]
    if not slots or same or len(slots) > max(most, len(seen)):
        problem = "reveals no slot" if same else f"returned {len(slots)} slots, of at most {most}"
        remedy = "Return a Revealed token or None, a mask, for each slot, at least one of `seen` newly revealed."
        raise plugins.refused(decoder, "advance", about, problem, remedy)
    return slots


class ByBlock(VariableLengthDecoder):
    """A base with the settings of decoders that finish one block of slots after another."""

    reveal_threshold: Share = Field(default=0.9, description="every guess above it is revealed, else the best one")
    masks: PositiveInt = Field(default=8, description="masks of one insertion")
    block: PositiveInt = Field(default=32, description="slots of a block; the next one waits until it has no mask")


def reveal(seen: Seen, chosen: Collection[int]) -> GrowingCanvas:
    """The canvas with the guesses of the ``chosen`` slots revealed."""
    canvas: GrowingCanvas = []
    for slot, guess in enumerate(seen):
        if isinstance(guess, Revealed):
            canvas.append(guess)
        else:
            canvas.append(Revealed(guess.token, guess.logprob) if slot in chosen else None)
    return canvas


def open_slots(seen: Seen, block: int) -> dict[int, Guess]:
    """The masked slots of the first unfinished block of ``block`` slots, each with its guess; the first slot first."""
    masked = {slot: guess for slot, guess in enumerate(seen) if isinstance(guess, Guess)}
    unfinished = min(masked) // block
    return {slot: guess for slot, guess in masked.items() if slot // block == unfinished}


def confident(guesses: Mapping[int, Guess], threshold: float) -> set[int]:
    """The slots whose guess has a probability above ``threshold``. If there is none, the slot of the best guess; the
    first one wins a tie."""
    sure = {slot for slot, guess in guesses.items() if guess.chance > threshold}
    return sure or {max(guesses, key=lambda slot: guesses[slot].logprob)}


def eos_confidence(chances: Sequence[float], window: int) -> float:
    """The sum of the last ``window`` p(EOS) of slots whose most probable token it is, over ``window``: slots that are
    missing count as zeros."""
    return math.fsum(chances[-window:]) / window


class DaedalDecoder(ByBlock):
    """The second stage of DAEDAL: inserts masks where the model is least sure, while it expects no EOS.

    Each pass works inside the first unfinished block of ``block`` slots. It reveals every guess above
    ``reveal_threshold``, or else the best one. While the EOS confidence over ``eos_window`` slots is below
    ``eos_threshold``, the least confident of the slots that stay masked becomes ``masks`` masks, if its confidence is
    below ``insertion_threshold``.

    Ours: a revealed EOS counts as p(EOS) = 1, and other revealed slots expect no EOS. The first slot wins a tie. Close
    to the largest length, an insertion has only as many masks as fit.
    """

    order: Literal["daedal"] = "daedal"
    eos_window: PositiveInt = Field(32, description="E: slots that the EOS confidence is a mean over")
    eos_threshold: Share = Field(0.9, description="below this EOS confidence masks are inserted")
    insertion_threshold: Share = Field(0.1, description="only a slot whose guess is below it becomes several masks")
    appended_eos: NonNegativeInt = Field(
        0, description="revealed EOS slots behind the first canvas; in the authors' code E/2: 16 where E = 32"
    )

    @property
    def starts_masked(self) -> bool:
        return not self.appended_eos

    def first(self, length: int, eos_id: int, most: int) -> GrowingCanvas:
        return [*[None] * length, *[Revealed(eos_id, 0.0)] * min(self.appended_eos, max(0, most - length))]

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> GrowingCanvas:
        guesses = open_slots(seen, self.block)
        sure = confident(guesses, self.reveal_threshold)
        slots = reveal(seen, sure)
        unsure = [slot for slot in guesses if slot not in sure and guesses[slot].chance < self.insertion_threshold]
        chances = []
        for slot in seen:
            if slot.token == eos_id:
                chances.append(math.exp(slot.eos_logprob) if isinstance(slot, Guess) else 1.0)
        if unsure and eos_confidence(chances, self.eos_window) < self.eos_threshold:
            weakest = min(unsure, key=lambda slot: guesses[slot].logprob)
            slots[weakest : weakest + 1] = [None] * max(1, min(self.masks, most - len(slots) + 1))
        return slots


_SEGMENT, _LARGEST = Fraction(1, 10), 8  # the width of a step of the gap, and the largest multiple


class RhoEosDecoder(ByBlock):
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

    order: Literal["rho_eos"] = "rho_eos"
    low: Share = Field(0.4, description="below this share of EOS guesses masks are added")
    high: Share = Field(0.6, description="above it masks are dropped")
    adjustments: NonNegativeInt = Field(64, description="passes that may change the length")

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> GrowingCanvas:
        slots = reveal(seen, confident(open_slots(seen, self.block), self.reveal_threshold))
        guesses = [slot for slot in seen if isinstance(slot, Guess)]
        density = Fraction(sum(guess.token == eos_id for guess in guesses), len(guesses))
        low, high = Fraction(str(self.low)), Fraction(str(self.high))  # the config's decimals, exactly
        if step >= self.adjustments or low <= density <= high:
            return slots
        gap = max(density - high, low - density)
        change = self.masks * min(_LARGEST, 2 ** (math.ceil(gap / _SEGMENT) - 1))
        if density > high:
            while change and len(slots) > SHORTEST and slots[-1] is None:
                slots.pop()
                change -= 1
            return slots
        end = 0
        while end < len(slots) and ((slot := slots[end]) is None or slot.token != eos_id):
            end += 1
        more = min(change, max(0, most - len(slots)))
        return [*slots[:end], *[None] * more, *slots[end:]]


class SemiAutoregressiveDecoder(VariableLengthDecoder):
    """LLaDA's own decoding (arXiv:2502.09992): one block after another, from left to right, until a block has an EOS.

    A pass reveals the ``tokens`` guesses of the largest probability in the first unfinished block; the first slot wins
    a tie. What lies behind the first finished block with an EOS is dropped. No length is chosen: the canvas is as long
    as the longest answer, and the checkpoint must have learned to fill it with EOS (``eos_padding``).
    """

    order: Literal["semi_autoregressive"] = "semi_autoregressive"
    tokens: PositiveInt = Field(1, description="guesses that a pass reveals")
    block: PositiveInt = Field(32, description="slots of a block")

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> GrowingCanvas:
        guesses = open_slots(seen, self.block)
        best = sorted(guesses, key=lambda slot: (-guesses[slot].logprob, slot))[: self.tokens]
        slots, end = reveal(seen, best), (min(guesses) // self.block + 1) * self.block
        finished = slots[:end]
        ends = None not in finished and any(slot is not None and slot.token == eos_id for slot in finished)
        return finished if ends else slots


class ConfidenceThresholdDecoder(VariableLengthDecoder):
    """All guesses above a threshold at once, or else the best one: as many passes as that takes, on a canvas whose
    length stays.

    What others compare a step budget with, such as the parallel decoding of Fast-dLLM (arXiv:2505.22618).
    """

    order: Literal["confidence_threshold"] = "confidence_threshold"
    threshold: Share = Field(0.9, description="every guess above it is revealed, else the best one")
    block: PositiveInt | None = Field(
        None, description="slots of a block, which the next one waits for; null: the canvas is one block"
    )

    def advance(self, seen: Seen, eos_id: int, step: int, most: int) -> GrowingCanvas:
        return reveal(seen, confident(open_slots(seen, self.block or len(seen)), self.threshold))


VARIABLE_LENGTH: dict[str, type[VariableLengthDecoder]] = {
    kind.model_fields["order"].default: kind
    for kind in (DaedalDecoder, RhoEosDecoder, SemiAutoregressiveDecoder, ConfidenceThresholdDecoder)
}
