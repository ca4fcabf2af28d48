"""Length methods after other papers: LR-style, SmartCrop-style, partial unmask, CAL, DAEDAL."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field, PositiveInt

from entropy_valley.decoding.requests import SHORTEST, Reading
from entropy_valley.decoding.variable_length import eos_confidence
from entropy_valley.lengths.base import Choice, Fitted, LengthMethod, OnGrid, Sentence, candidate_length
from entropy_valley.settings import CanvasRatio, PerDirection, Share

# --- LR-style: confidence corrected for its trend in the length.
#
# After LR-DLLM (cheng2026improvingvariablelengthgenerationdiffusion in the paper's bibliography), whose length
# regularisation has no public code: the regression stands for it, and tables call it "LR-style".


class LengthRegularisedStyle(OnGrid):
    """Confidence corrected for its trend in the length.

    Largest s(L) = mean log max-p over all L slots + k · log L among EV's candidates; the shorter one on a tie.

    -k is the least-squares slope of mean log max-p on log L over the sentence's own probes, so that s compares how far
    each canvas lies above their line. A single candidate has no slope (k = 0); two lie on their line and are a tie.
    The row's scores are -s.
    """

    method: Literal["lr_style"] = "lr_style"

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        logs = {length: math.log(length) for length in sorted(probes)}
        means = {length: math.fsum(probes[length].logprobs) / length for length in logs}
        slope = statistics.linear_regression(logs.values(), means.values()).slope if len(logs) > 1 else 0.0
        return Choice.lowest({length: round(slope * logs[length] - means[length], 6) for length in logs})


# --- SmartCrop-style: one probe of a long canvas, which is then cropped where the model first expects the EOS.
#
# After SmartCrop (rossi2026diffusionlanguagemodelsnatively in the paper's bibliography), which presupposes a backbone
# trained on EOS padding; the paper's checkpoints see one EOS.


class SmartCropStyle(OnGrid):
    """One probe of a long canvas, cropped where p(EOS) rises.

    The canvas ends at the first slot whose p(EOS) reaches the ``quantile`` of all slots of this sentence.

    The one probe is of the largest of ``ratios``, EV's grid, times ``stretch``. The quantile is interpolated between
    slots; at least one slot of content is kept, as in the candidate lengths.
    """

    method: Literal["smartcrop_style"] = "smartcrop_style"
    stretch: CanvasRatio = Field(1.5, description="the canvas has this times the largest ratio")
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


# --- Partial unmask (of the authors' code): a long canvas, revealed in part, is cut at its first EOS.


class PartialUnmask(LengthMethod):
    """A long canvas, revealed in part by minimum entropy, and cut at the first slot that expects the EOS.

    The canvas of ``ratio`` is denoised for ``steps`` of ``steps`` + 1 steps, then read once more. The length is the
    first slot whose most probable token is the EOS, that slot included; the whole canvas where there is none. A
    revealed slot counts with the token that it was revealed as. It costs ``steps`` + 1 calls.
    """

    method: Literal["partial_unmask"] = "partial_unmask"
    ratio: CanvasRatio = Field(1.5, description="of the long canvas, which has a slot for the EOS too")
    steps: PositiveInt = Field(4, description="that reveal slots before the last pass")

    @property
    def draft_steps(self) -> int:
        """Those of the :class:`~entropy_valley.decoding.requests.Draft` that is read."""
        return self.steps

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return (candidate_length(self.ratio, sentence.source_tokens),)

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        ((length, reading),) = probes.items()
        chances = zip(reading.logprobs, reading.eos_logprobs, strict=True)
        return Choice(next((slot for slot, (best, eos) in enumerate(chances, 1) if eos >= best), length))


# --- CAL: a climb over lengths to the largest calibrated confidence of the first denoising step.
#
# After "Diffusion LMs Can Approximate Optimal Infilling Lengths Implicitly" (arXiv:2602.00476) and its authors' code,
# github.com/NiuHechang/Calibrated_Adaptive_Length at ea025c9; docs/methods.md says where this departs from it.


class CalibratedConfidence(Fitted):
    """CAL: a climb from the canvas of Fixed Ratio.

    Largest Φ(L) = mean max-probability of all L slots / B(L). The bias B is fitted for this backbone and direction.

    From the canvas of Fixed Ratio the length first grows by single slots, then it shrinks from the same start. A side
    stops after ``patience`` slots in a row without a new best value. It also stops after ``reach`` slots; this limit is
    ours, because a curve without a maximum would leave the context. Values are compared in six decimals, and the first
    length wins a tie. The row's scores are -Φ.
    """

    method: Literal["cal"] = "cal"
    ratios: PerDirection[CanvasRatio] = Field(description="where the climb starts, by direction, or one for all")
    patience: PositiveInt = Field(2, description="a side stops after so many slots in a row without improvement")
    reach: PositiveInt = Field(32, description="most slots on a side")

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        start = candidate_length(self.ratios, sentence.source_tokens)
        if start not in probes:
            return (start,)
        best = self._cost(probes[start])
        for side in (1, -1):
            length, misses = start, 0
            while misses < self.patience and abs(length - start) < self.reach and length + side >= SHORTEST:
                length += side
                if length not in probes:
                    return (length,)
                cost = self._cost(probes[length])
                misses, best = (0, cost) if cost < best else (misses + 1, best)
        return ()

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        costs = {length: self._cost(reading) for length, reading in probes.items()}  # in the order of the climb
        return Choice(min(costs, key=costs.__getitem__), costs)

    def _cost(self, reading: Reading) -> float:
        length = len(reading.tokens)
        return -round(mean_confidence(reading) / self.statistics.confidence_bias(length), 6)


def mean_confidence(reading: Reading) -> float:
    """Mean over all slots of the most probable token's probability."""
    return math.fsum(map(math.exp, reading.logprobs)) / len(reading.logprobs)


# --- DAEDAL's first stage: the canvas grows until the model expects the EOS at its end.
#
# After "Beyond Fixed: Training-Free Variable-Length Denoising for Diffusion Large Language Models" (github.com/
# Li-Jinsong/DAEDAL). Its second stage is :mod:`entropy_valley.decoding.variable_length`.


class Daedal(LengthMethod):
    """The first stage of DAEDAL: the canvas grows until the model expects the EOS at its end.

    Probe, and add ``step`` slots while the EOS confidence is below ``expansion_threshold``. Take the last canvas.

    It starts with the canvas of Fixed Ratio (``ratios``) or with ``start`` slots. It ends at ``cap`` slots or at the
    end of the context: a checkpoint that was trained on one EOS never fills a large ``eos_window``, so all its
    canvases grow up to there. The last length is chosen even if an earlier one had a higher confidence. The canvas
    file has the negative confidences.
    """

    method: Literal["daedal"] = "daedal"
    ONE_OF = ("ratios", "start")
    ratios: PerDirection[CanvasRatio | None] = Field(None, description="where it starts, by direction; or give `start`")
    start: PositiveInt | None = Field(None, description="slots that it starts with, whatever the source")
    eos_window: PositiveInt = Field(32, description="E: slots that the EOS confidence is a mean over")
    expansion_threshold: Share = Field(0.5, description="below this EOS confidence the canvas grows")
    step: PositiveInt = Field(8, description="slots that it grows by")
    cap: PositiveInt = Field(2048, description="most slots; the backbone's context may leave fewer")

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
        logprobs = zip(reading.logprobs, reading.eos_logprobs, strict=True)
        return eos_confidence([math.exp(eos) for best, eos in logprobs if eos >= best], self.eos_window)
