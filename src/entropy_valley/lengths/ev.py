"""Entropy-Valley (the paper's Algorithm 1): the candidate whose all-mask canvas the model is surest about.

:class:`EntropyValley` is the paper's method. The variants below it are ours, but for the adaptive grid, which the
paper's limitations propose.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from entropy_valley.decoding.requests import SHORTEST, ProbeResult
from entropy_valley.lengths.base import Choice, Fitted, OnGrid, Sentence
from entropy_valley.settings import Rate, Weight


def mean_entropy(reading: ProbeResult) -> float:
    """Mean over all slots but the last, the one that is kept for the EOS; six decimals."""
    content = reading.entropies[:-1]
    return round(math.fsum(content) / len(content), 6)


def summed_entropy(reading: ProbeResult) -> float:
    """The sum over the same slots. It is not normalised, so it prefers short canvases."""
    return round(math.fsum(reading.entropies[:-1]), 6)


def length_normalised_entropy(reading: ProbeResult) -> float:
    """The mean over log L. The token count L has the EOS in it, so that one slot and its EOS divide by log 2, not 0."""
    content = reading.entropies[:-1]
    return round(math.fsum(content) / len(content) / math.log(len(reading.entropies)), 6)


def median_entropy(reading: ProbeResult) -> float:
    """The median over the same slots."""
    return round(statistics.median(reading.entropies[:-1]), 6)


SCORES: dict[str, Callable[[ProbeResult], float]] = {
    "mean": mean_entropy,
    "sum": summed_entropy,
    "length_normalised": length_normalised_entropy,
    "median": median_entropy,
}


def valley(probes: Mapping[int, ProbeResult], score: Callable[[ProbeResult], float] = mean_entropy) -> Choice:
    """The length of the lowest score; the shorter one on a tie."""
    return Choice.lowest({length: score(reading) for length, reading in probes.items()})


class EntropyValley(OnGrid):
    """EV: the lowest entropy among the candidates of a grid.

    Smallest mean entropy (nats) over the first L - 1 slots of the all-mask canvas; the shorter one on a tie.
    Means are rounded to six decimals, as in the rows, before they are compared: so float32 noise of another
    batch, thread count or machine cannot decide a tie. ``score`` replaces the mean by one of the paper's "normalisation
    alternatives".
    """

    method: Literal["ev"] = "ev"
    score: Literal[*SCORES] = Field(
        "mean", description="of the entropies of the first L - 1 slots; length_normalised: mean / log L"
    )

    def choose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Choice:
        return valley(probes, SCORES[self.score])


class CalibratedEntropyValley(OnGrid, Fitted):
    """EV's mean entropy over the entropy that is usual at that length.

    Smallest mean entropy / Ē(L) on EV's grid; the shorter one on a tie in six decimals.

    Ē(L) is the mean entropy of all-mask canvases of training pairs at their true length L (no training).
    """

    method: Literal["ev_calibrated"] = "ev_calibrated"

    def choose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Choice:
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

    method: Literal["ev_prior"] = "ev_prior"
    weight: Weight = Field(0.1, description="λ of mean entropy + λ·z²/2")
    window: Rate = Field(3.0, le=100, description="candidates have |z| at most this")

    def propose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Iterable[int]:
        mean, std, tokens = self.statistics.ratio_mean, self.statistics.ratio_std, max(1, sentence.source_tokens)
        low, high = (tokens * (mean + side * self.window * std) for side in (-1, 1))
        candidates = range(max(SHORTEST, math.ceil(low)), math.floor(high) + 1)
        return candidates or (max(SHORTEST, round(tokens * mean)),)

    def choose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Choice:
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

    method: Literal["ev_line"] = "ev_line"
    candidates: PositiveInt = Field(7, description="lengths that are probed")
    weight: Weight = Field(0.1, description="λ of mean entropy + λ·(z − shift)²/2")
    shift: float = Field(1.0, allow_inf_nan=False, description="of the prior's centre, in standard deviations")

    def propose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Iterable[int]:
        expected = self.statistics.line.expected(sentence.source_tokens)
        first = max(SHORTEST, round(expected) - self.candidates)
        near = range(first, first + 2 * self.candidates + 1)
        return sorted(near, key=lambda length: (abs(length - expected), length))[: self.candidates]

    def choose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Choice:
        z = {length: self.statistics.line.z(length, sentence.source_tokens) - self.shift for length in probes}
        return Choice.lowest(
            {length: round(mean_entropy(probes[length]) + self.weight * z[length] ** 2 / 2, 6) for length in probes}
        )


class RerankedEntropyValley(OnGrid):
    """The candidates of lowest entropy on EV's grid, all decoded.

    The ``k`` lowest mean entropies of EV's grid, all decoded; the best mean log-probability at reveal time is kept.

    Of equal entropies the shorter canvas comes first.
    """

    method: Literal["ev_rerank"] = "ev_rerank"
    k: PositiveInt = Field(2, description="how many are decoded")

    def choose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Choice:
        choice = valley(probes)
        deepest = sorted(choice.scores, key=lambda length: (choice.scores[length], length))
        return dataclasses.replace(choice, contenders=deepest[: self.k])


class AdaptiveEntropyValley(OnGrid):
    """EV whose window grows while the valley lies at its edge.

    One step adds a ratio on that side, at the distance of the side's two outermost ratios. A side takes at most
    ``extensions`` steps. A step of less than one slot counts too, although it probes nothing new. The score is EV's.
    """

    method: Literal["adaptive_ev"] = "adaptive_ev"
    extensions: NonNegativeInt = Field(3, description="most ratio steps on a side")

    def propose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Iterable[int]:
        below, above = 0, 0
        while True:
            window = self._lengths(sentence, below, above)
            if window - probes.keys():
                return window
            best = valley({length: probes[length] for length in window}).length
            can_fall = below < self._most and self._edges(below + 1, 0)[0] > 0
            lower = below + (best == min(window) and can_fall)
            upper = above + (best == max(window) and above < self._most)
            if (lower, upper) == (below, above):
                return ()
            below, above = lower, upper

    def choose(self, sentence: Sentence, probes: Mapping[int, ProbeResult]) -> Choice:
        return valley(probes)

    @cached_property
    def _exact(self) -> list[Fraction]:
        """The grid, ascending: the config's decimals, exactly."""
        return sorted(Fraction(str(ratio)) for ratio in self.ratios)

    @property
    def _most(self) -> int:
        """Steps on a side; a grid of one ratio has none."""
        return self.extensions if len(self.ratios) > 1 else 0

    def _edges(self, below: int, above: int) -> tuple[Fraction, Fraction]:
        """The outermost ratios after so many steps."""
        low, high = self._exact[:2], self._exact[-2:]
        return low[0] - below * (low[-1] - low[0]), high[-1] + above * (high[-1] - high[0])

    def _lengths(self, sentence: Sentence, below: int, above: int) -> set[int]:
        beyond = (self._edges(min(step, below), min(step, above)) for step in range(1, self._most + 1))
        ratios = {*self._exact, *(ratio for edges in beyond for ratio in edges)}
        return {self.slots(ratio, sentence) for ratio in ratios}
