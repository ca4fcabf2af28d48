"""Calibrated EV, ours: compares the entropy with the one that is usual for true lengths of so many slots."""

from __future__ import annotations

from collections.abc import Mapping

from entropy_valley.canvas.length_methods.base import Choice, Fitted, OnGrid, Sentence
from entropy_valley.canvas.length_methods.ev import mean_entropy
from entropy_valley.engine.reading import Reading


class CalibratedEntropyValley(OnGrid, Fitted):
    """EV's mean entropy over the entropy that is usual at that length.

    Smallest mean entropy / Ē(L) on EV's grid; the shorter one on a tie in six decimals.

    Ē(L) is the mean entropy of all-mask canvases of training pairs at their true length L (no training).
    """

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        expected = {length: self.statistics.expected_entropy(length) for length in probes}
        scores = {length: round(mean_entropy(probes[length]) / expected[length], 6) for length in probes}
        return Choice.lowest(scores)
