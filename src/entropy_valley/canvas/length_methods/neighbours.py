"""Decode five neighbours (the paper's multi-candidate control): pay for whole decodes, not for probes alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from entropy_valley.canvas.length_methods.base import Choice, Sentence
from entropy_valley.canvas.length_methods.ev import EntropyValley
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading


class Neighbours(EntropyValley):
    """L_EV - ``radius``, …, L_EV + ``radius``, all decoded; the best mean log-probability at reveal time is kept.

    Lengths below the shortest canvas are left out, and by the job those beyond the context.
    """

    def __init__(self, ratios: Sequence[float], radius: int = 2) -> None:
        super().__init__(ratios)
        self._radius = radius

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        choice = super().choose(sentence, probes)
        lengths = range(max(SHORTEST, choice.length - self._radius), choice.length + self._radius + 1)
        return dataclasses.replace(choice, contenders=lengths)
