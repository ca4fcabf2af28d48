"""What EV is compared with: Fixed Ratio, Oracle, and methods that probe less or decode more than EV."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
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
from entropy_valley.settings import CanvasRatio, Name, PerDirection, Section


class Ratio(Unprobed, LengthMethod):
    """One corpus ratio per direction."""

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

    sees_reference: ClassVar[bool] = True

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(sentence.reference_tokens + 1)


# --- EOS probe (of the authors' code): the candidate at whose end the model most expects the EOS.


class EosProbe(OnGrid):
    """The candidate of a grid whose last slot has the largest p(EOS).

    Of all-mask canvases. Log-probabilities are compared in six decimals, as EV's entropies are; the shorter canvas wins
    a tie. The row's scores are -log p(EOS).
    """

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice.lowest({length: -round(reading.eos_logprobs[-1], 6) for length, reading in probes.items()})


# --- The line of expected lengths, or the centre of a prior about it, by itself: ``ev_line`` without the model.


class ExpectedLength(Unprobed, Fitted):
    """The expected length by itself: no probe.

    The length nearest to the line of |y| + 1 on |x| over the training pairs, two slots at least. With a ``shift`` it is
    the mode of ``ev_line``'s prior, so many standard deviations above the line."""

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


# --- Realised-ratio reassignment: a method's canvas ratios, given to other sentences of the same test set.
#
# The paper's control (sec. "Selector checks"): it keeps the distribution of the ratios, and breaks the pairing of
# source and canvas. The mean over many permutations estimates the score of a ratio that is drawn at random from EV's.
# Each permutation is a method of its own.

DECILES = 10


class Reassigned(Section):
    """A control: another method's canvas ratios, given to other sentences. It probes nothing."""

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
    generator, dealt = random.Random(seed), [0] * len(lengths)
    for group in _groups(counts, within):
        givers = list(group)
        generator.shuffle(givers)
        for place, giver in zip(group, givers, strict=True):
            dealt[place] = max(SHORTEST, round(Fraction(lengths[giver], counts[giver]) * counts[place]))
    return dealt


def _groups(sources: Sequence[int], within: str) -> list[list[int]]:
    """The sentences that exchange ratios: all, or tenths of nearly equal size; equal sources in the file's order."""
    if within == "all":
        return [list(range(len(sources)))]
    ranked = sorted(range(len(sources)), key=sources.__getitem__)
    bounds = [len(ranked) * part // DECILES for part in range(DECILES + 1)]
    return [ranked[first:last] for first, last in itertools.pairwise(bounds)]
