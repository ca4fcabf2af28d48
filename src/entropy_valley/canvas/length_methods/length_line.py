"""The line of expected lengths by itself: ``ev_line`` without the model."""

from __future__ import annotations

from collections.abc import Mapping

from entropy_valley.canvas.length_methods.base import Choice, Fitted, Sentence, Unprobed
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading


class LengthLine(Unprobed, Fitted):
    """The expected length by itself: no probe.

    The length nearest to the line of |y| + 1 on |x| over the training pairs, two slots at least."""

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(max(SHORTEST, round(self.statistics.line.expected(sentence.source_tokens))))
