"""EV along the line of expected lengths, ours: the integer lengths nearest to it, with a prior about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from entropy_valley.canvas.length_methods.base import Choice, Sentence
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading


class LineEntropyValley:
    """Smallest mean entropy + ``weight`` · (z - ``shift``)²/2 (nats); the shorter one on a tie in six decimals.

    z standardises a canvas by the line of |y| + 1 on |x| over the training pairs. Candidates are the ``candidates``
    lengths nearest to the line, two slots at least. The prior is centred ``shift`` standard deviations beyond the line,
    because the valley leans the other way: one slot too many raises an all-mask canvas's mean entropy by more than one
    too few.
    """

    sees_reference = False
    uses_statistics = True

    def __init__(
        self, candidates: int = 7, weight: float = 0.1, shift: float = 1.0, statistics: LengthStatistics | None = None
    ) -> None:
        self._candidates, self._weight, self._shift = candidates, weight, shift
        self._statistics = statistics

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        expected = self._statistics.line.expected(sentence.source_tokens)
        first = max(SHORTEST, round(expected) - self._candidates)
        near = range(first, first + 2 * self._candidates + 1)
        return sorted(near, key=lambda length: (abs(length - expected), length))[: self._candidates]

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice.lowest({length: self._score(sentence, length, reading) for length, reading in probes.items()})

    def _score(self, sentence: Sentence, length: int, reading: Reading) -> float:
        z = self._statistics.line.z(length, sentence.source_tokens)
        return round(mean_entropy(reading) + self._weight * (z - self._shift) ** 2 / 2, 6)
