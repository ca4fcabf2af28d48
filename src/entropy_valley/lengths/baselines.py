"""What EV is compared with.

First Fixed Ratio, Oracle, and methods that probe less or decode more than EV. Then length methods after other papers:
LR-style, SmartCrop-style, partial unmask, CAL, DAEDAL. Last a control that permutes EV's ratios.
"""

import dataclasses
import itertools
import math
import random
import statistics
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from entropy_valley.decoding.canvas import SHORTEST, ProbeResult
from entropy_valley.decoding.variable_length import eos_confidence
from entropy_valley.errors import InputError
from entropy_valley.lengths.base import (
    EXACT,
    Choice,
    Fitted,
    LengthMethod,
    OnGrid,
    OnRatios,
    Probes,
    Sentence,
    Unprobed,
    candidate_length,
)
from entropy_valley.lengths.ev import OnLine, valley
from entropy_valley.settings import CanvasRatio, Name, PerDirection, Printed, Section, Share


class Ratio(Unprobed, LengthMethod):
    """One corpus ratio per direction."""

    method: Literal["ratio"] = "ratio"
    ratios: PerDirection[CanvasRatio] = Field(description="by direction, or one for all")
    reserve_eos_slot: bool = Field(
        False, description="one slot more than ratio · |x|, for the EOS, as EV and Oracle have it; false: as the paper"
    )
    exact: bool | None = EXACT

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        exact = self.exact is not False
        return Choice(candidate_length(self.ratios, sentence.source_tokens, self.reserve_eos_slot, exact))


class FixedLength(Unprobed, LengthMethod):
    """The same canvas for every sentence: no length is chosen. For checkpoints with EOS padding."""

    method: Literal["fixed"] = "fixed"
    slots: PositiveInt = Field(64, description="of the canvas; the backbone's context may leave fewer")

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return Choice(self.slots if sentence.room is None else max(1, min(self.slots, sentence.room)))


class Oracle(Unprobed, LengthMethod):
    """The reference's length.

    As many slots as the reference has tokens, and one for its EOS, and ``offset`` more or less; then at least two."""

    method: Literal["oracle"] = "oracle"
    sees_reference: ClassVar[bool] = True
    offset: int | None = Field(None, description="slots more than the reference's length")

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        length = sentence.reference_slots
        return Choice(max(SHORTEST, length + self.offset) if self.offset else length)


class OracleOnGrid(Unprobed, OnGrid):
    """Of the candidates of a grid, the one nearest to the reference's length; the shorter one on a tie."""

    method: Literal["oracle_on_grid"] = "oracle_on_grid"
    sees_reference: ClassVar[bool] = True

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return _nearest_to_reference(OnGrid.propose(self, sentence, probes), sentence)


class OracleOnLine(Unprobed, OnLine):
    """Of the candidates of ``ev_fit``, the one nearest to the reference's length; the shorter one on a tie."""

    method: Literal["oracle_on_line"] = "oracle_on_line"
    sees_reference: ClassVar[bool] = True

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return _nearest_to_reference(OnLine.propose(self, sentence, probes), sentence)


def _nearest_to_reference(candidates: Iterable[int], sentence: Sentence) -> Choice:
    return Choice(min(sorted(candidates), key=lambda length: abs(length - sentence.reference_slots)))


# --- EOS probe (of the authors' code): the candidate at whose end the model most expects the EOS.


class EosProbe(OnGrid):
    """The candidate of a grid whose last slot has the largest p(EOS).

    Of all-mask canvases. Log-probabilities are compared in six decimals, as EV's entropies are; the shorter canvas wins
    a tie. The row's scores are -log p(EOS).
    """

    method: Literal["eos_probe"] = "eos_probe"

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return Choice.lowest({length: -round(reading.eos_logprobs[-1], 6) for length, reading in probes.items()})


class ExpectedLength(Unprobed, Fitted):
    """The expected length by itself: no probe.

    The length nearest to the line of |y| + 1 on |x| over the training pairs, two slots at least."""

    method: Literal["length_line"] = "length_line"

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return Choice(max(SHORTEST, round(self.line.expected(sentence.source_tokens))))


# --- Length head: canvas lengths that a linear layer on the prompt's states predicts, as CMLM (arXiv:1904.09324) does.


class LikeliestLengths(Unprobed, LengthMethod):
    """The lengths that a layer on the prompt's states predicts.

    The ``beam`` likeliest lengths, all decoded; the best mean log-probability at reveal time is kept.

    It costs one pass over the prompt and no canvas slots. The row's scores are the negative log-probabilities.
    """

    method: Literal["length_head"] = "length_head"
    uses_length_head: ClassVar[bool] = True
    gives_probabilities: ClassVar[bool] = True
    beam: PositiveInt = Field(1, le=32, description="how many of the likeliest are decoded")

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        predicted = sentence.predicted
        if predicted is None:
            raise InputError("length_head", "has no predictions", "Give the translator a length head.")
        best = sorted(predicted, key=lambda length: (-predicted[length], length))[: self.beam]
        return Choice(best[0], {length: -predicted[length] for length in best}, best)


# --- Decode five neighbours, the paper's multi-candidate control: it pays for whole decodes.


class Neighbours(OnGrid):
    """EV's choice and its neighbours, all decoded.

    L_EV - ``radius``, …, L_EV + ``radius``, all decoded; the text of the best mean log-probability is kept.

    Lengths below the shortest canvas are left out. Lengths beyond the context are left out when the row is made.
    """

    method: Literal["neighbours"] = "neighbours"
    radius: PositiveInt = Field(2, description="slots on either side")
    rescoring: Literal["final", "reveal"] = Field(
        "final",
        description="log-probabilities of the finished text's tokens and first EOS in a pass over it, or of each token "
        "in the pass that revealed it",
    )

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        choice = valley(probes)
        lengths = range(max(SHORTEST, choice.length - self.radius), choice.length + self.radius + 1)
        return dataclasses.replace(choice, contenders=lengths, rescoring=self.rescoring == "final")


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

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        logs = {length: math.log(length) for length in sorted(probes)}
        means = {length: math.fsum(probes[length].logprobs) / length for length in logs}
        slope = statistics.linear_regression(logs.values(), means.values()).slope if len(logs) > 1 else 0.0
        return Choice.lowest({length: round(slope * logs[length] - means[length], 6) for length in logs})


# --- SmartCrop-style: one probe of a long canvas, which is then cropped where the model first expects the EOS.
#
# After SmartCrop (rossi2026diffusionlanguagemodelsnatively in the paper's bibliography), which presupposes a backbone
# trained on EOS padding; the paper's checkpoints see one EOS.


class SmartCropStyle(OnRatios):
    """One probe of a long canvas, cropped where p(EOS) rises.

    The canvas ends at the first slot whose p(EOS) reaches the ``quantile`` of all slots of this sentence.

    The one probe is of the largest of ``ratios``, EV's grid, times ``stretch``. The quantile is interpolated between
    slots; at least one slot of content is kept, as in the candidate lengths.
    """

    method: Literal["smartcrop_style"] = "smartcrop_style"
    stretch: CanvasRatio = Field(1.5, description="the canvas has this times the largest ratio")
    quantile: Share = Field(0.9, description="of the sentence's p(EOS); the first slot that reaches it ends the canvas")

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        return (self.slots(round(max(self.ratios) * self.stretch, 6), sentence),)

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        (reading,) = probes.values()
        chances = [math.exp(logprob) for logprob in reading.eos_logprobs]
        # What reaches a quantile between two values reaches the upper one: there is none between them.
        threshold = sorted(chances)[math.ceil(self.quantile * (len(chances) - 1))]
        end = next(slot for slot, chance in enumerate(chances, 1) if chance >= threshold)
        return Choice(max(SHORTEST, end))


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
    def draft_steps(self) -> int:  # type: ignore[override]  # of most methods it is the same in all settings
        """Those of the :class:`~entropy_valley.decoding.requests.Draft` that is read."""
        return self.steps

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        return (candidate_length(self.ratio, sentence.source_tokens),)

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        ((length, reading),) = probes.items()
        chances = zip(reading.logprobs, reading.eos_logprobs, strict=True)
        return Choice(next((slot for slot, (best, eos) in enumerate(chances, 1) if eos >= best), length))


# --- CAL: a climb over lengths to the largest calibrated confidence of the first denoising step.
#
# After "Diffusion LMs Can Approximate Optimal Infilling Lengths Implicitly" (arXiv:2602.00476) and its authors' code,
# github.com/NiuHechang/Calibrated_Adaptive_Length at ea025c9; docs/methods.md says where this departs from it.


class CalibratedConfidence(Fitted):
    """CAL: a climb from the canvas of Fixed Ratio with the EOS slot.

    Largest Φ(L) = mean max-probability of all L slots / B(L). The bias B is fitted for this backbone and direction.

    From this canvas the length first grows by single slots, then it shrinks from the same start. A side
    stops after ``patience`` slots in a row without a new best value. It also stops after ``reach`` slots; this limit is
    ours, because a curve without a maximum would leave the context. Values are compared in six decimals, and the first
    length wins a tie. The row's scores are -Φ.
    """

    method: Literal["cal"] = "cal"
    uses_statistics: ClassVar[Sequence[str]] = ("confidence_bias",)
    ratios: PerDirection[CanvasRatio] = Field(description="where the climb starts, by direction, or one for all")
    patience: PositiveInt = Field(2, description="a side stops after so many slots in a row without improvement")
    reach: PositiveInt = Field(32, description="most slots on a side")

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
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

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        costs = {length: self._cost(reading) for length, reading in probes.items()}  # in the order of the climb
        return Choice(min(costs, key=costs.__getitem__), costs)

    def _cost(self, reading: ProbeResult) -> float:
        length = len(reading.tokens)
        return -round(mean_confidence(reading) / self.confidence_bias(length), 6)


def mean_confidence(reading: ProbeResult) -> float:
    """Mean over all slots of the most probable token's probability."""
    return math.fsum(map(math.exp, reading.logprobs)) / len(reading.logprobs)


# --- DAEDAL's first stage; its second one, and the paper, are in :mod:`entropy_valley.decoding.variable_length`.


class Daedal(LengthMethod):
    """The first stage of DAEDAL: the canvas grows until the model expects the EOS at its end.

    Probe, and add ``step`` slots while the EOS confidence is below ``expansion_threshold``. Take the last canvas.

    It starts with the canvas of Fixed Ratio with the EOS slot (``ratios``) or with ``start`` slots. It ends at ``cap``
    slots or at the end of the context: a checkpoint that was trained on one EOS never fills a large ``eos_window``, so
    all its canvases grow up to there. The last length is chosen even if an earlier one had a higher confidence. The
    row's scores are the negative confidences.
    """

    method: Literal["daedal"] = "daedal"
    ONE_OF = ("ratios", "start")
    ratios: PerDirection[CanvasRatio | None] = Field(None, description="where it starts, by direction; or give `start`")
    start: PositiveInt | None = Field(None, description="slots that it starts with, whatever the source")
    eos_window: PositiveInt = Field(32, description="E: slots that the EOS confidence is a mean over")
    expansion_threshold: Share = Field(0.5, description="below this EOS confidence the canvas grows")
    step: PositiveInt = Field(8, description="slots that it grows by")
    cap: PositiveInt = Field(2048, description="most slots; the backbone's context may leave fewer")

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        most = self.cap if sentence.room is None else min(self.cap, sentence.room)
        first = self.start or candidate_length(self.ratios, sentence.source_tokens)  # type: ignore[arg-type]  # ONE_OF
        length = min(first, most)
        while length in probes:
            if length == most or self._confidence(probes[length]) >= self.expansion_threshold:
                return ()
            length = min(length + self.step, most)
        return (length,)

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return Choice(max(probes), {length: -self._confidence(reading) for length, reading in probes.items()})

    def _confidence(self, reading: ProbeResult) -> float:
        """Of an all-mask canvas; the EOS is a slot's most probable token where the two have one log-probability."""
        logprobs = zip(reading.logprobs, reading.eos_logprobs, strict=True)
        return eos_confidence([math.exp(eos) for best, eos in logprobs if eos >= best], self.eos_window)


# --- Realised-ratio reassignment: a method's canvas ratios, given to other sentences of the same test set.
#
# The paper's control (sec. "Selector checks"): it keeps the distribution of the ratios, and breaks the pairing of
# source and canvas. The mean over many permutations estimates the score of a ratio that is drawn at random from EV's.
# Each permutation is a method of its own.


class Reassigned(Section):
    """A control: another method's canvas ratios, given to other sentences. It probes nothing."""

    probes: ClassVar[bool] = False
    method: Literal["reassigned"] = "reassigned"
    label: Printed[str | None] = Field(None, description="its printed name in tables and figures")
    short: Printed[str | None] = Field(None, description="the same where there is little room")
    of: Name = Field("ev", description="the method whose ratios L/|x| are permuted")
    seed: PositiveInt = Field(description="of the permutation")
    within: Literal["all", "deciles"] = Field(
        "all", description="deciles: only between sentences of the same decile of source length"
    )


def reassign(lengths: Sequence[int], sources: Sequence[int], seed: int, within: str) -> list[int]:
    """New canvas lengths: the ratios L/|x| are permuted, and each is multiplied by its new sentence's source length.

    ``lengths`` are slots with that of the EOS, ``sources`` are tokens; an empty source counts as one token. The result
    is rounded to the nearest slot. Ratios are exact fractions, so a sentence with its own ratio keeps its length.
    ``within`` "all" permutes over the whole test set, "deciles" within each tenth of it by source length.
    """
    counts = [max(1, count) for count in sources]
    generator, reassigned = random.Random(seed), [0] * len(lengths)
    for group in _groups(counts, within):
        givers = list(group)
        generator.shuffle(givers)
        for place, giver in zip(group, givers, strict=True):
            reassigned[place] = max(SHORTEST, round(Fraction(lengths[giver], counts[giver]) * counts[place]))
    return reassigned


def _groups(sources: Sequence[int], within: str) -> list[list[int]]:
    """The sentences that exchange ratios: all, or tenths of nearly equal size; equal sources in the file's order."""
    if within == "all":
        return [list(range(len(sources)))]
    ranked = sorted(range(len(sources)), key=sources.__getitem__)
    bounds = [len(ranked) * part // 10 for part in range(11)]
    return [ranked[first:last] for first, last in itertools.pairwise(bounds)]
