"""Length head: canvas lengths that a linear layer on the prompt's states predicts, as CMLM (arXiv:1904.09324) does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, PositiveInt

from entropy_valley.canvas.length_methods.base import Choice, LengthMethod, Sentence, Unprobed
from entropy_valley.engine.reading import Reading


class LengthHead(Unprobed, LengthMethod):
    """The lengths that a layer on the prompt's states predicts.

    The ``beam`` likeliest lengths, all decoded; the best mean log-probability at reveal time is kept.

    It costs one pass over the prompt and no canvas slots. The canvas file has the negative log-probabilities.
    """

    uses_length_head: ClassVar[bool] = True
    beam: PositiveInt = Field(1, le=32, description="how many of the likeliest are decoded")

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        predicted = sentence.predicted
        best = sorted(predicted, key=lambda length: (-predicted[length], length))[: self.beam]
        return Choice(best[0], {length: -predicted[length] for length in best}, best)
