"""Fixed Ratio: one corpus ratio for every sentence of a direction."""

from __future__ import annotations

from collections.abc import Mapping

from entropy_valley.canvas.length_methods.base import Choice, Sentence, Unprobed
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.reading import Reading


class Ratio(Unprobed):
    """The candidate length of one ratio; ``ratios`` is the config's key, here narrowed to one direction."""

    def __init__(self, ratios: float, reserve_eos_slot: bool = True) -> None:
        self._ratio, self._reserve_eos_slot = ratios, reserve_eos_slot

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(candidate_length(self._ratio, sentence.source_tokens, self._reserve_eos_slot))
