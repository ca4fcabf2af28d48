"""Canvas lengths from a sentence's counts alone: no forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from entropy_valley.canvas.length_methods.base import Choice, Fitted, LengthMethod, Sentence, Unprobed
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import PerDirection, Rate


class Oracle(Unprobed, LengthMethod):
    """The reference length: an upper bound, not a method.

    As many slots as the reference has tokens, and one for its EOS."""

    sees_reference: ClassVar[bool] = True

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(sentence.reference_tokens + 1)


class Ratio(Unprobed, LengthMethod):
    """One corpus ratio per direction."""

    ratios: PerDirection[Rate] = Field(description="by direction, or one for all")
    reserve_eos_slot: bool = Field(True, description="one slot more than ratio · |x|, for the EOS; false: none")

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(candidate_length(self.ratios, sentence.source_tokens, self.reserve_eos_slot))


class LengthLine(Unprobed, Fitted):
    """The expected length by itself: no probe.

    The length nearest to the line of |y| + 1 on |x| over the training pairs, two slots at least."""

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(max(SHORTEST, round(self.statistics.line.expected(sentence.source_tokens))))
