"""DAEDAL's first stage: the canvas grows until the model expects the EOS at its end.

After "Beyond Fixed: Training-Free Variable-Length Denoising for Diffusion Large Language Models" (github.com/
Li-Jinsong/DAEDAL). Its second stage is :mod:`entropy_valley.decoding.variable_length.daedal`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from entropy_valley.canvas.length_methods.base import Choice, LengthMethod, Sentence
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import PerDirection, Rate, Share


class Daedal(LengthMethod):
    """The first stage of DAEDAL: the canvas grows until the model expects the EOS at its end.

    Probe, and add ``step`` slots while the EOS confidence is below ``expansion_threshold``. Take the last canvas.

    It starts with the canvas of Fixed Ratio (``ratios``) or with ``start`` slots. It ends at ``cap`` slots or at the
    end of the context: a checkpoint that was trained on one EOS never fills a large ``eos_window``, so all its
    canvases grow up to there. The last length is chosen even if an earlier one had a higher confidence. The canvas
    file has the negative confidences.
    """

    ratios: PerDirection[Rate | None] = Field(None, description="where it starts, by direction; or give `start`")
    start: PositiveInt | None = Field(None, description="slots that it starts with, whatever the source")
    eos_window: PositiveInt = Field(32, description="E: slots that the EOS confidence is a mean over")
    expansion_threshold: Share = Field(0.5, description="below this EOS confidence the canvas grows")
    step: PositiveInt = Field(8, description="slots that it grows by")
    cap: PositiveInt = Field(2048, description="most slots; the backbone's context may leave fewer")

    @model_validator(mode="after")
    def _one_start(self) -> Self:
        if (self.ratios is None) == (self.start is None):
            raise ValueError("give either `ratios` or `start`")
        return self

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        most = self.cap if sentence.room is None else min(self.cap, sentence.room)
        length = min(self._first(sentence), most)
        while length in probes:
            if length == most or self._confidence(probes[length]) >= self.expansion_threshold:
                return ()
            length = min(length + self.step, most)
        return (length,)

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(max(probes), {length: -self._confidence(reading) for length, reading in probes.items()})

    def _first(self, sentence: Sentence) -> int:
        return self.start or candidate_length(self.ratios, sentence.source_tokens)

    def _confidence(self, reading: Reading) -> float:
        """Of an all-mask canvas; the EOS is a slot's most probable token where the two have one log-probability."""
        known = zip(reading.logprobs, reading.eos_logprobs, strict=True)
        return eos_confidence([math.exp(eos) for best, eos in known if eos >= best], self.eos_window)


def eos_confidence(chances: Sequence[float], window: int) -> float:
    """The sum of the last ``window`` p(EOS) of slots whose most probable token it is, over ``window``: slots that are
    missing count as zeros."""
    return math.fsum(chances[-window:]) / window
