"""EV along the line of expected lengths, ours: the integer lengths nearest to it, with a prior about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field, PositiveInt

from entropy_valley.canvas.length_methods.base import Choice, Fitted, Sentence
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import Weight


class LineEntropyValley(Fitted):
    """EV over the lengths nearest to the line of expected ones, with a prior about it.

    Smallest mean entropy + ``weight`` · (z - ``shift``)²/2 (nats); the shorter one on a tie in six decimals.

    z standardises a canvas by the line of |y| + 1 on |x| over the training pairs. Candidates are the ``candidates``
    lengths nearest to the line, two slots at least. The prior is centred ``shift`` standard deviations above the line.
    This balances the entropy, which prefers short canvases: one slot too many raises the mean entropy more than one
    slot too few.
    """

    candidates: PositiveInt = Field(7, description="lengths that are probed")
    weight: Weight = Field(0.1, description="λ of mean entropy + λ·(z − shift)²/2")
    shift: float = Field(1.0, allow_inf_nan=False, description="of the prior's centre, in standard deviations")

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        expected = self.statistics.line.expected(sentence.source_tokens)
        first = max(SHORTEST, round(expected) - self.candidates)
        near = range(first, first + 2 * self.candidates + 1)
        return sorted(near, key=lambda length: (abs(length - expected), length))[: self.candidates]

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice.lowest({length: self._score(sentence, length, reading) for length, reading in probes.items()})

    def _score(self, sentence: Sentence, length: int, reading: Reading) -> float:
        z = self.statistics.line.z(length, sentence.source_tokens)
        return round(mean_entropy(reading) + self.weight * (z - self.shift) ** 2 / 2, 6)
