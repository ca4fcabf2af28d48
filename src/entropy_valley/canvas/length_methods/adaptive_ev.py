"""Adaptive EV, which the paper's limitations propose: candidates beyond the grid if the valley lies at its edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property

from pydantic import Field, NonNegativeInt

from entropy_valley.canvas.length_methods.base import Choice, OnGrid, Sentence
from entropy_valley.canvas.length_methods.ev import valley
from entropy_valley.engine.reading import Reading


class AdaptiveEntropyValley(OnGrid):
    """EV whose window grows while the valley lies at its edge.

    One step adds a ratio on that side, at the distance of the side's two outermost ratios. A side takes at most
    ``extensions`` steps. A step of less than one slot counts too, although it probes nothing new. The score is EV's.
    """

    extensions: NonNegativeInt = Field(3, description="most ratio steps on a side")

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        below, above = 0, 0
        while True:
            window = self._lengths(sentence, below, above)
            if window - probes.keys():
                return window
            best = valley({length: probes[length] for length in window}).length
            lower = below + (best == min(window) and self._can_fall(below))
            upper = above + (best == max(window) and above < self._most)
            if (lower, upper) == (below, above):
                return ()
            below, above = lower, upper

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return valley(probes)

    @cached_property
    def _exact(self) -> list[Fraction]:
        """The grid, ascending: the config's decimals, exactly."""
        return sorted(Fraction(str(ratio)) for ratio in self.ratios)

    @property
    def _most(self) -> int:
        """Steps on a side; a grid of one ratio has none."""
        return self.extensions if len(self.ratios) > 1 else 0

    def _can_fall(self, below: int) -> bool:
        return below < self._most and self._edges(below + 1, 0)[0] > 0

    def _edges(self, below: int, above: int) -> tuple[Fraction, Fraction]:
        """The outermost ratios after so many steps."""
        low, high = self._exact[:2], self._exact[-2:]
        return low[0] - below * (low[-1] - low[0]), high[-1] + above * (high[-1] - high[0])

    def _lengths(self, sentence: Sentence, below: int, above: int) -> set[int]:
        beyond = (self._edges(min(step, below), min(step, above)) for step in range(1, self._most + 1))
        ratios = {*self._exact, *(ratio for edges in beyond for ratio in edges)}
        return {self.slots(ratio, sentence) for ratio in ratios}
