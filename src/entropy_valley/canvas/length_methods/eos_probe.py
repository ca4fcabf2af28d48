"""EOS probe (of the authors' code): the candidate at whose end the model most expects the EOS."""

from __future__ import annotations

from collections.abc import Mapping

from entropy_valley.canvas.length_methods.base import Choice, OnGrid, Sentence
from entropy_valley.engine.reading import Reading


class EosProbe(OnGrid):
    """The candidate of a grid whose last slot has the largest p(EOS).

    Of all-mask canvases. Log-probabilities are compared in six decimals, as EV's entropies are; the shorter canvas wins
    a tie. The canvas file has -log p(EOS).
    """

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice.lowest({length: -round(reading.eos_logprobs[-1], 6) for length, reading in probes.items()})
