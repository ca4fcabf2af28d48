"""EV with a prior, ours: all lengths of a wide window, with a penalty for ratios that are rare in training pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pydantic import Field

from entropy_valley.canvas.length_methods.base import Choice, Fitted, Sentence
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import Rate, Weight


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
