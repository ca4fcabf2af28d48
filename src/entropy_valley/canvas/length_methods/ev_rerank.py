"""Reranked EV, ours: where the valleys are nearly as deep, the finished translations decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from entropy_valley.canvas.length_methods.base import Choice, Sentence
from entropy_valley.canvas.length_methods.ev import EntropyValley
from entropy_valley.engine.reading import Reading


class RerankedEntropyValley(EntropyValley):
    """The ``k`` lowest mean entropies of EV's grid, all decoded; the best mean log-probability at reveal time is kept.

    Of equal entropies the shorter canvas comes first.
    """

    def __init__(self, ratios: Sequence[float], k: int = 2) -> None:
        super().__init__(ratios)
        self._k = k

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        choice = super().choose(sentence, probes)
        deepest = sorted(choice.scores, key=lambda length: (choice.scores[length], length))
        return dataclasses.replace(choice, contenders=deepest[: self._k])
