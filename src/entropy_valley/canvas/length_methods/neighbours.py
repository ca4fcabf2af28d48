"""Decode five neighbours, the paper's multi-candidate control: it pays for whole decodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, PositiveInt

from entropy_valley.canvas.length_methods.base import Choice, OnGrid, Sentence
from entropy_valley.canvas.length_methods.ev import valley
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading


class Neighbours(OnGrid):
    """EV's choice and its neighbours, all decoded.

    L_EV - ``radius``, …, L_EV + ``radius``, all decoded; the text of the best mean log-probability is kept.

    Lengths below the shortest canvas are left out. Lengths beyond the context are left out when the row is made.
    """

    radius: PositiveInt = Field(2, description="slots on either side")
    rescoring: Literal["final", "reveal"] = Field(
        "final",
        description="log-probabilities of the finished text's tokens and first EOS in a pass over it, or of each token "
        "in the pass that revealed it",
    )

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        choice = valley(probes)
        lengths = range(max(SHORTEST, choice.length - self.radius), choice.length + self.radius + 1)
        return dataclasses.replace(choice, contenders=lengths, rescoring=self.rescoring == "final")
