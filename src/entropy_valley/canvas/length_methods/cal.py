"""CAL: a climb over lengths to the largest calibrated confidence of the first denoising step.

After "Diffusion LMs Can Approximate Optimal Infilling Lengths Implicitly" (arXiv:2602.00476) and its authors' code,
github.com/NiuHechang/Calibrated_Adaptive_Length at ea025c9; docs/methods.md says where this departs from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pydantic import Field, PositiveInt

from entropy_valley.canvas.length_methods.base import Choice, Fitted, Sentence
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import PerDirection, Rate


class CalibratedConfidence(Fitted):
    """CAL: a climb from the canvas of Fixed Ratio.

    Largest Φ(L) = mean max-probability of all L slots / B(L). The bias B is fitted for this backbone and direction.

    From the canvas of Fixed Ratio the length first grows by single slots, then it shrinks from the same start. A side
    stops after ``patience`` slots in a row without a new best value. It also stops after ``reach`` slots; this limit is
    ours, because a curve without a maximum would leave the context. Values are compared in six decimals, and the first
    length wins a tie. The canvas file has -Φ.
    """

    ratios: PerDirection[Rate] = Field(description="where the climb starts, by direction, or one for all")
    patience: PositiveInt = Field(2, description="a side stops after so many slots in a row without improvement")
    reach: PositiveInt = Field(32, description="most slots on a side")

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        start = candidate_length(self.ratios, sentence.source_tokens)
        if start not in probes:
            return (start,)
        best = self._cost(probes[start])
        for side in (1, -1):
            length, misses = start, 0
            while misses < self.patience and abs(length - start) < self.reach and length + side >= SHORTEST:
                length += side
                if length not in probes:
                    return (length,)
                cost = self._cost(probes[length])
                misses, best = (0, cost) if cost < best else (misses + 1, best)
        return ()

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        costs = {length: self._cost(reading) for length, reading in probes.items()}  # in the order of the climb
        return Choice(min(costs, key=costs.__getitem__), costs)

    def _cost(self, reading: Reading) -> float:
        length = len(reading.tokens)
        return -round(mean_confidence(reading) / self.statistics.confidence_bias(length), 6)


def mean_confidence(reading: Reading) -> float:
    """Mean over all slots of the most probable token's probability."""
    return math.fsum(map(math.exp, reading.logprobs)) / len(reading.logprobs)
