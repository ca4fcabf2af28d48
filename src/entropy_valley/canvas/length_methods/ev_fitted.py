"""EV with what training pairs tell about lengths, ours: their usual entropies, their ratios, or their line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pydantic import Field, PositiveInt

from entropy_valley.canvas.length_methods.base import Choice, Fitted, OnGrid, Sentence
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import Rate, Weight


class CalibratedEntropyValley(OnGrid, Fitted):
    """EV's mean entropy over the entropy that is usual at that length.

    Smallest mean entropy / Ē(L) on EV's grid; the shorter one on a tie in six decimals.

    Ē(L) is the mean entropy of all-mask canvases of training pairs at their true length L (no training).
    """

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        expected = {length: self.statistics.expected_entropy(length) for length in probes}
        scores = {length: round(mean_entropy(probes[length]) / expected[length], 6) for length in probes}
        return Choice.lowest(scores)


class PriorEntropyValley(Fitted):
    """EV over every length, with a prior on the canvas ratio.

    Smallest mean entropy + ``weight`` · z²/2; the shorter one on a tie in six decimals.

    z is the canvas ratio L/|x| standardised by mean and standard deviation of (|y| + 1)/|x| over the training pairs:
    with weight 1, z²/2 is the negative log of a Gaussian prior up to a constant. Candidates are all integer lengths
    with \\|z\\| at most ``window``, or the one next to the mean where a source is so short that there is none.
    """

    weight: Weight = Field(0.1, description="λ of mean entropy + λ·z²/2")
    window: Rate = Field(3.0, description="candidates have |z| at most this")

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        mean, std, tokens = self.statistics.ratio_mean, self.statistics.ratio_std, max(1, sentence.source_tokens)
        low, high = (tokens * (mean + side * self.window * std) for side in (-1, 1))
        candidates = range(max(SHORTEST, math.ceil(low)), math.floor(high) + 1)
        return candidates or (max(SHORTEST, round(tokens * mean)),)

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        z = {length: self.statistics.z(length, sentence.source_tokens) for length in probes}
        return Choice.lowest(
            {length: round(mean_entropy(probes[length]) + self.weight * z[length] ** 2 / 2, 6) for length in probes}
        )


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
