"""What EV is compared with: Fixed Ratio, Oracle, and methods that probe less or decode more than EV."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from entropy_valley.decoding.requests import SHORTEST, Reading
from entropy_valley.lengths.base import (
    EXACT,
    Choice,
    Fitted,
    LengthMethod,
    OnGrid,
    Sentence,
    Unprobed,
    candidate_length,
)
from entropy_valley.lengths.ev import valley
from entropy_valley.settings import CanvasRatio, PerDirection


class Ratio(Unprobed, LengthMethod):
    """One corpus ratio per direction."""

    method: Literal["ratio"] = "ratio"
    ratios: PerDirection[CanvasRatio] = Field(description="by direction, or one for all")
    reserve_eos_slot: bool = Field(
        False, description="one slot more than ratio · |x|, for the EOS, as EV and Oracle have it; false: as the paper"
    )
    exact: bool | None = EXACT

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        exact = self.exact is not False
        return Choice(candidate_length(self.ratios, sentence.source_tokens, self.reserve_eos_slot, exact))


# --- Oracle: the reference's own length, an upper bound and no method.


class Oracle(Unprobed, LengthMethod):
    """The reference length: an upper bound, not a method.

    As many slots as the reference has tokens, and one for its EOS."""

    method: Literal["oracle"] = "oracle"
    sees_reference: ClassVar[bool] = True

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(sentence.reference_tokens + 1)


# --- EOS probe (of the authors' code): the candidate at whose end the model most expects the EOS.


class EosProbe(OnGrid):
    """The candidate of a grid whose last slot has the largest p(EOS).

    Of all-mask canvases. Log-probabilities are compared in six decimals, as EV's entropies are; the shorter canvas wins
    a tie. The row's scores are -log p(EOS).
    """

    method: Literal["eos_probe"] = "eos_probe"

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice.lowest({length: -round(reading.eos_logprobs[-1], 6) for length, reading in probes.items()})


# --- The line of expected lengths, or the centre of a prior about it, by itself: ``ev_line`` without the model.


class ExpectedLength(Unprobed, Fitted):
    """The expected length by itself: no probe.

    The length nearest to the line of |y| + 1 on |x| over the training pairs, two slots at least. With a ``shift`` it is
    the mode of ``ev_line``'s prior, so many standard deviations above the line."""

    method: Literal["length_line"] = "length_line"
    shift: float | None = Field(None, allow_inf_nan=False, description="in standard deviations; null: none")

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        expected = self.statistics.line.expected(sentence.source_tokens)
        above = (self.shift or 0.0) * self.statistics.line.deviation(sentence.source_tokens)
        return Choice(max(SHORTEST, round(expected + above)))


# --- Length head: canvas lengths that a linear layer on the prompt's states predicts, as CMLM (arXiv:1904.09324) does.


class LikeliestLengths(Unprobed, LengthMethod):
    """The lengths that a layer on the prompt's states predicts.

    The ``beam`` likeliest lengths, all decoded; the best mean log-probability at reveal time is kept.

    It costs one pass over the prompt and no canvas slots. The row's scores are the negative log-probabilities.
    """

    method: Literal["length_head"] = "length_head"
    uses_length_head: ClassVar[bool] = True
    beam: PositiveInt = Field(1, le=32, description="how many of the likeliest are decoded")

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        predicted = sentence.predicted
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

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        choice = valley(probes)
        lengths = range(max(SHORTEST, choice.length - self.radius), choice.length + self.radius + 1)
        return dataclasses.replace(choice, contenders=lengths, rescoring=self.rescoring == "final")
