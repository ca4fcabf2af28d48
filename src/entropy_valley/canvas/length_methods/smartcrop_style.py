"""SmartCrop-style: one probe of a long canvas, which is then cropped where the model first expects the EOS.

After SmartCrop (rossi2026diffusionlanguagemodelsnatively in the paper's bibliography), which presupposes a backbone
trained on EOS padding; the paper's checkpoints see one EOS.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from entropy_valley.canvas.length_methods.base import Choice, OnGrid, Sentence
from entropy_valley.engine.context import SHORTEST
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import Rate, Share


class SmartCropStyle(OnGrid):
    """One probe of a long canvas, cropped where p(EOS) rises.

    The canvas ends at the first slot whose p(EOS) reaches the ``quantile`` of all slots of this sentence.

    The one probe is of the largest of ``ratios``, EV's grid, times ``stretch``. The quantile is interpolated between
    slots; at least one slot of content is kept, as in the candidate lengths.
    """

    stretch: Rate = Field(1.5, description="the canvas has this times the largest ratio")
    quantile: Share = Field(0.9, description="of the sentence's p(EOS); the first slot that reaches it ends the canvas")

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return (self.slots(round(max(self.ratios) * self.stretch, 6), sentence),)

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        (reading,) = probes.values()
        chances = [math.exp(logprob) for logprob in reading.eos_logprobs]
        threshold = quantile(chances, self.quantile)
        end = next(slot for slot, chance in enumerate(chances, 1) if chance >= threshold)
        return Choice(max(SHORTEST, end))


def quantile(values: Sequence[float], share: float) -> float:
    """Between the two values around place ``share`` · (n - 1) of the sorted ones, as numpy has it."""
    ordered, place = sorted(values), share * (len(values) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return min(high, low + (high - low) * (place - math.floor(place)))
