"""The line of expected lengths, or the centre of a prior about it, by itself: ``ev_line`` without the model."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from entropy_valley.canvas.length_methods.base import Choice, Fitted, Sentence, Unprobed
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading


class LengthLine(Unprobed, Fitted):
    """The expected length by itself: no probe.

    The length nearest to the line of |y| + 1 on |x| over the training pairs, two slots at least. With a ``shift`` it is
    the mode of ``ev_line``'s prior, so many standard deviations above the line."""

    shift: float | None = Field(None, allow_inf_nan=False, description="in standard deviations; null: none")

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        expected = self.statistics.line.expected(sentence.source_tokens)
        above = (self.shift or 0.0) * self.statistics.line.deviation(sentence.source_tokens)
        return Choice(max(SHORTEST, round(expected + above)))
