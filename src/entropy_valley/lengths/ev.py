"""Entropy-Valley (the paper's Algorithm 1): the candidate whose all-mask canvas the model is surest about.

:class:`EntropyValley` is the paper's method. The variants below it are ours, but for the adaptive grid, which the
paper's limitations propose.
"""

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt

from entropy_valley.decoding.canvas import SHORTEST, ProbeResult
from entropy_valley.errors import InputError
from entropy_valley.lengths import logit
from entropy_valley.lengths.base import Choice, Example, Fitted, OnGrid, OnRatios, Probes, Sentence
from entropy_valley.settings import JsonObject


def mean_entropy(reading: ProbeResult) -> float:
    """Mean over all slots but the last, the one that is kept for the EOS; six decimals."""
    content = reading.entropies[:-1]
    return round(math.fsum(content) / len(content), 6)


def summed_entropy(reading: ProbeResult) -> float:
    """The sum over the same slots. It is not normalised, so it prefers short canvases."""
    return round(math.fsum(reading.entropies[:-1]), 6)


def length_normalised_entropy(reading: ProbeResult) -> float:
    """The mean over log L. The token count L has the EOS in it, so that one slot and its EOS divide by log 2, not 0."""
    content = reading.entropies[:-1]
    return round(math.fsum(content) / len(content) / math.log(len(reading.entropies)), 6)


def median_entropy(reading: ProbeResult) -> float:
    """The median over the same slots."""
    return round(statistics.median(reading.entropies[:-1]), 6)


ScoreName = Literal["mean", "sum", "length_normalised", "median"]
SCORES: dict[ScoreName, Callable[[ProbeResult], float]] = {
    "mean": mean_entropy,
    "sum": summed_entropy,
    "length_normalised": length_normalised_entropy,
    "median": median_entropy,
}


# What `ev_fit` may weigh, and the features of each.
Term = Literal["entropy", "prior", "repeats"]
TERMS: dict[Term, tuple[str, ...]] = {"entropy": ("entropy",), "prior": ("z", "z_squared"), "repeats": ("repeats",)}
Feature = Literal["entropy", "z", "z_squared", "repeats"]
# Fitted to 100 development pairs of each run of config/findings.yaml, 27 together, by docs/other_weights.py.
CONSTANTS: dict[Feature, float] = {"entropy": 7.223, "z": -1.777, "z_squared": 0.5298, "repeats": 1.938}


def valley(probes: Probes, score: Callable[[ProbeResult], float] = mean_entropy) -> Choice:
    """The length of the lowest score; the shorter one on a tie."""
    return Choice.lowest({length: score(reading) for length, reading in probes.items()})


class EntropyValley(OnGrid):
    """EV: the lowest entropy among the candidates of a grid.

    Smallest mean entropy (nats) over the first L - 1 slots of the all-mask canvas; the shorter one on a tie.
    Means are rounded to six decimals, as in the rows, before they are compared: so float32 noise of another batch,
    thread count or machine, of about 1e-6, hardly ever decides. ``score`` replaces the mean by one of the paper's
    "normalisation alternatives".
    """

    method: Literal["ev"] = "ev"
    score: ScoreName = Field(
        "mean", description="of the entropies of the first L - 1 slots; length_normalised: mean / log L"
    )

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return valley(probes, SCORES[self.score])


class OnLine(Fitted):
    """A base for length methods that probe the lengths nearest to the line of expected ones, two slots at least."""

    candidates: PositiveInt = Field(5, description="lengths nearest to the length line")

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        return nearest(self.line.expected(sentence.source_tokens), self.candidates)


class LineEntropyValley(OnLine):
    """EV over the lengths nearest to the line of expected ones, with a prior about it.

    Smallest mean entropy + ``weight`` · (z - ``shift``)²/2 (nats); the shorter one on a tie in six decimals.

    z standardises a canvas by the line of |y| + 1 on |x| over the training pairs. Candidates are the ``candidates``
    lengths nearest to the line, two slots at least. The prior is centred ``shift`` standard deviations above the line.
    This balances the entropy, which prefers short canvases: one slot too many raises the mean entropy more than one
    slot too few. Both constants were tuned on development pairs, of the demo and of Tatoeba.
    """

    method: Literal["ev_line"] = "ev_line"
    weight: float = Field(0.1, ge=0, allow_inf_nan=False, description="λ of mean entropy + λ·(z − shift)²/2")
    shift: float = Field(1.0, allow_inf_nan=False, description="of the prior's centre, in standard deviations")

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        scores = {}
        for length, reading in probes.items():
            z = self.line.z(length, sentence.source_tokens) - self.shift
            scores[length] = round(mean_entropy(reading) + self.weight * z**2 / 2, 6)
        return Choice.lowest(scores)


class _WeighedReadings(OnLine):
    """A base for methods that weigh three readings of the ``candidates`` lengths nearest to the length line.

    Most probable length by P(L) ∝ exp(-w·x(L)), x(L) being the mean entropy, z and z² (the prior), and the repeats.

    z standardises a canvas by the line of |y| + 1 on |x| over the training pairs. Repeats are adjacent slots with the
    same most probable token: on a canvas that is too long, two slots share a word. The row's scores are -log P, six
    decimals; the shorter length wins a tie.
    """

    candidates: int = Field(5, ge=2, description="lengths that are probed")

    def _choice(self, sentence: Sentence, probes: Probes, weights: Mapping[Any, float]) -> Choice:
        features = self._features(sentence, probes)
        shares = logit.probabilities([*features.values()], weights)
        # 1e-300: what is impossible has a logarithm to print. + 0.0: no -0.0 in the rows.
        scores = [round(-math.log(max(share, 1e-300)), 6) + 0.0 for share in shares]
        return Choice.lowest(dict(zip(features, scores, strict=True)))

    def _features(self, sentence: Sentence, probes: Probes) -> dict[int, dict[str, float]]:
        """By length, ascending, the value of each feature."""
        features = {}
        for length, reading in sorted(probes.items()):
            z = self.line.z(length, sentence.source_tokens)
            values = {"entropy": mean_entropy(reading), "z": z, "z_squared": z**2, "repeats": repeats(reading)}
            features[length] = values
        return features


class WeighedEntropyValley(_WeighedReadings):
    """EV's entropy beside two more readings of the same canvases, with given weights: it needs no development pairs.

    P is a probability only for what the weights were fitted to. The default is the fit of :class:`FittedEntropyValley`
    to development pairs of three tiny backbones and three directions together (docs/methods.md).
    """

    method: Literal["ev_weighed"] = "ev_weighed"
    weights: dict[Feature, FiniteFloat] = Field(
        CONSTANTS, min_length=1, description="the weight of each feature; one that is not named has none"
    )

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return self._choice(sentence, probes, self.weights)


class FittedEntropyValley(_WeighedReadings):
    """EV's entropy beside two more readings of the same canvases, weighed by a conditional logit.

    Weights are fitted to development pairs: the fit maximises the likelihood of the lengths of ``pairs`` of them; a
    pair whose length is no candidate says nothing. A term without which held-out pairs are at least as likely is left
    out, the worst first.
    """

    method: Literal["ev_fit"] = "ev_fit"
    learns: ClassVar[bool] = True
    gives_probabilities: ClassVar[bool] = True
    pairs: PositiveInt = Field(100, description="development pairs that the weights are fitted to")
    terms: list[Term] = Field([*TERMS], min_length=1, description="what is weighed")
    _weights: Mapping[str, float] | None = None

    def learn(self, examples: Sequence[Example]) -> tuple[Self, JsonObject]:
        return self.fitted(self.observed(examples))

    def fitted(self, choices: Sequence[logit.Observed]) -> tuple[Self, JsonObject]:
        """As :meth:`learn`, from what is observed of pairs, of several runs perhaps."""
        kept, held_out = _kept_terms(choices, self.terms)
        learned = self.model_copy()
        learned._weights = logit.fit(choices, _names(kept))
        return learned, {"pairs": len(choices), "weights": learned._weights, "held_out": held_out}

    def observed(self, examples: Sequence[Example]) -> list[logit.Observed]:
        """What a fit sees of development pairs; raises InputError where no length is a candidate."""
        choices = []
        for example in examples:
            if example.length in example.probes:
                features = list(self._features(example.sentence, example.probes).values())
                choices.append(logit.Observed(features, sorted(example.probes).index(example.length)))
        if not choices:
            problem = f"none of {len(examples)} development pairs has a length among its candidates"
            raise InputError("ev_fit", problem, "Give more pairs or more candidates.")
        return choices

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        if self._weights is None:
            raise InputError("ev_fit", "has learned nothing", "Call learn with development pairs before choose.")
        return self._choice(sentence, probes, self._weights)


def nearest(expected: float, count: int) -> list[int]:
    """The ``count`` canvas lengths nearest to an expected one, ascending; of two at one distance the shorter."""
    first = max(SHORTEST, round(expected) - count)
    near = range(first, first + 2 * count + 1)
    return sorted(sorted(near, key=lambda length: (abs(length - expected), length))[:count])


def repeats(reading: ProbeResult) -> int:
    """How many adjacent slots of a canvas have the same most probable token."""
    return sum(map(operator.eq, reading.tokens, reading.tokens[1:]))


def _names(terms: Iterable[Term]) -> list[str]:
    return [name for term in terms for name in TERMS[term]]


def _kept_terms(choices: Sequence[logit.Observed], terms: Sequence[Term]) -> tuple[list[Term], dict[str, float]]:
    """The terms that help on held-out pairs, and the mean log-likelihoods (nats) that say so: with all terms, without
    each one, and with those that are kept."""
    kept = [term for term in TERMS if term in terms]

    def likelihood(some: Iterable[Term]) -> float:
        return round(logit.held_out(choices, _names(some)), 4)

    best = likelihood(kept)
    facts = {"all": best}
    # Backward elimination. A term stays only if held-out pairs become less likely without it: on a tie it goes.
    while True:
        without = {}
        for term in kept:
            without[term] = likelihood(other for other in kept if other != term)
        # What an earlier round said stays: it is of more terms.
        facts = {**{f"without {term}": value for term, value in without.items()}, **facts}
        worst = max(without, key=without.__getitem__)
        if len(kept) == 1 or without[worst] < best:
            return kept, facts | {"kept": best}
        kept, best = [term for term in kept if term != worst], without[worst]


class AdaptiveEntropyValley(OnRatios):
    """EV whose window grows while the valley lies at its edge.

    One step adds a ratio on that side, at the distance of the side's two outermost ratios. A side takes at most
    ``extensions`` steps. A step of less than one slot counts too, although it probes nothing new. The score is EV's.
    """

    method: Literal["adaptive_ev"] = "adaptive_ev"
    extensions: NonNegativeInt = Field(3, description="most ratio steps on a side")

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        # Each round takes all steps again from the grid on: what was probed decides them as it did before, and only
        # the last step can be new.
        ratios = sorted(Fraction(str(ratio)) for ratio in self.ratios)  # the config's decimals, exactly
        low, high = ratios[:2], ratios[-2:]
        below = above = self.extensions if len(ratios) > 1 else 0
        while True:
            window = {self.slots(ratio, sentence) for ratio in ratios}
            if window - probes.keys():
                return window
            best = valley({length: probes[length] for length in window}).length
            lower = ratios[0] - (low[-1] - low[0])
            # No step below goes to a ratio of 0 or less. A window of one length grows on both sides.
            falls, rises = best == min(window) and below > 0 and lower > 0, best == max(window) and above > 0
            if not (falls or rises):
                return ()
            if falls:
                ratios.insert(0, lower)
                below -= 1
            if rises:
                ratios.append(ratios[-1] + (high[-1] - high[0]))
                above -= 1

    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        return valley(probes)
