"""Adaptive EV: the next step that the paper's limitations name, a window that follows the valley over its edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from entropy_valley.canvas.length_methods.base import Choice, Sentence
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.reading import Reading


class AdaptiveEntropyValley:
    """EV whose window grows by one ratio step on a side while the valley lies at that side's edge.

    A side's step is the distance of its two outermost ratios, and it is taken at most ``extensions`` times. Where a
    step is less than a slot it probes nothing new, but counts. Same score and same decoder as EV.
    """

    sees_reference = False

    def __init__(self, ratios: Sequence[float], extensions: int = 3) -> None:
        self._ratios = sorted(Fraction(str(ratio)) for ratio in ratios)  # the config's decimals, exactly
        self._extensions = extensions if len(ratios) > 1 else 0

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        below, above = 0, 0
        while True:
            window = self._lengths(sentence, below, above)
            if window - probes.keys():
                return window
            valley = self.choose(sentence, {length: probes[length] for length in window}).length
            lower = below + (valley == min(window) and self._can_fall(below))
            upper = above + (valley == max(window) and above < self._extensions)
            if (lower, upper) == (below, above):
                return ()
            below, above = lower, upper

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice.lowest({length: mean_entropy(reading) for length, reading in probes.items()})

    def _can_fall(self, below: int) -> bool:
        return below < self._extensions and self._edges(below + 1, 0)[0] > 0

    def _edges(self, below: int, above: int) -> tuple[Fraction, Fraction]:
        """The outermost ratios after so many steps."""
        low, high = self._ratios[:2], self._ratios[-2:]
        return low[0] - below * (low[-1] - low[0]), high[-1] + above * (high[-1] - high[0])

    def _lengths(self, sentence: Sentence, below: int, above: int) -> set[int]:
        beyond = (self._edges(min(step, below), min(step, above)) for step in range(1, self._extensions + 1))
        ratios = {*self._ratios, *(ratio for edges in beyond for ratio in edges)}
        return {candidate_length(ratio, sentence.source_tokens) for ratio in ratios}
