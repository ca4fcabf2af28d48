"""Length head: canvas lengths that a linear layer on the prompt's states predicts, as CMLM (arXiv:1904.09324) does."""

from __future__ import annotations

from collections.abc import Mapping

from entropy_valley.canvas.length_methods.base import Choice, Sentence, Unprobed
from entropy_valley.engine.reading import Reading


class LengthHead(Unprobed):
    """The ``beam`` likeliest lengths, all decoded; the best mean log-probability at reveal time is kept.

    It costs one pass over the prompt and no canvas slots. The canvas file has the negative log-probabilities.
    """

    uses_length_head = True

    def __init__(self, beam: int = 1) -> None:
        self._beam = beam

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        predicted = sentence.predicted
        best = sorted(predicted, key=lambda length: (-predicted[length], length))[: self._beam]
        return Choice(best[0], {length: -predicted[length] for length in best}, best)
