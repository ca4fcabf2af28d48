"""Reranked EV, ours: the finished translations decide between the candidates of lowest entropy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pydantic import Field, PositiveInt

from entropy_valley.canvas.length_methods.base import Choice, OnGrid, Sentence
from entropy_valley.canvas.length_methods.ev import valley
from entropy_valley.engine.reading import Reading


class RerankedEntropyValley(OnGrid):
    """The candidates of lowest entropy on EV's grid, all decoded.

    The ``k`` lowest mean entropies of EV's grid, all decoded; the best mean log-probability at reveal time is kept.

    Of equal entropies the shorter canvas comes first.
    """

    k: PositiveInt = Field(2, description="how many are decoded")

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        choice = valley(probes)
        deepest = sorted(choice.scores, key=lambda length: (choice.scores[length], length))
        return dataclasses.replace(choice, contenders=deepest[: self.k])
