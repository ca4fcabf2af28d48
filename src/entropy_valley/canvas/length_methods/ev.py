"""Entropy-Valley (the paper's Algorithm 1): the candidate whose all-mask canvas the model is surest about."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field

from entropy_valley.canvas.length_methods.base import Choice, OnGrid, Sentence
from entropy_valley.engine.reading import Reading


def mean_entropy(reading: Reading) -> float:
    """Mean over all slots but the last, the one that is kept for the EOS; six decimals."""
    content = reading.entropies[:-1]
    return round(math.fsum(content) / len(content), 6)


def summed_entropy(reading: Reading) -> float:
    """The sum over the same slots. It is not normalised, so it prefers short canvases."""
    return round(math.fsum(reading.entropies[:-1]), 6)


def length_normalised_entropy(reading: Reading) -> float:
    """The mean over log L. The token count L has the EOS in it, so that one slot and its EOS divide by log 2, not 0."""
    content = reading.entropies[:-1]
    return round(math.fsum(content) / len(content) / math.log(len(reading.entropies)), 6)


def median_entropy(reading: Reading) -> float:
    """The median over the same slots."""
    return round(statistics.median(reading.entropies[:-1]), 6)


SCORES: dict[str, Callable[[Reading], float]] = {
    "mean": mean_entropy,
    "sum": summed_entropy,
    "length_normalised": length_normalised_entropy,
    "median": median_entropy,
}


def valley(probes: Mapping[int, Reading], score: Callable[[Reading], float] = mean_entropy) -> Choice:
    """The length of the lowest score; the shorter one on a tie."""
    return Choice.lowest({length: score(reading) for length, reading in probes.items()})


class EntropyValley(OnGrid):
    """EV: the lowest entropy among the candidates of a grid.

    Smallest mean entropy (nats) over the first L - 1 slots of the all-mask canvas; the shorter one on a tie.
    Means are rounded to six decimals, as in the canvas file, before they are compared: float32 noise of another batch,
    thread count or machine then decides no tie. ``score`` replaces the mean by one of the paper's "normalisation
    alternatives".
    """

    score: Literal[*SCORES] = Field(
        "mean", description="of the entropies of the first L - 1 slots; length_normalised: mean / log L"
    )

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return valley(probes, SCORES[self.score])
