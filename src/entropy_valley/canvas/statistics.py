"""What length methods may know of a backbone and a direction: lengths and readings of training pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

FLOOR = 1e-6  # the last decimal of a mean entropy: no expectation is below it


@dataclass(frozen=True)
class LengthLine:
    """|y| + 1 as a line in |x|: ``intercept`` + ``slope``·|x| slots, with a variance of ``variance``·|x|."""

    intercept: float
    slope: float
    variance: float

    def expected(self, source_tokens: int) -> float:
        """The canvas length on the line, in slots."""
        return self.intercept + self.slope * source_tokens

    def deviation(self, source_tokens: int) -> float:
        """The standard deviation about the line, in slots."""
        return math.sqrt(self.variance * max(1, source_tokens))

    def z(self, length: int, source_tokens: int) -> float:
        """How many standard deviations a canvas lies beyond the line; 0 where all pairs lie on it."""
        spread = self.deviation(source_tokens)
        return (length - self.expected(source_tokens)) / spread if spread else 0.0


@dataclass(frozen=True)
class LengthStatistics:
    """Measured on training pairs by one run's checkpoint.

    ``ratio_mean``, ``ratio_std``: of (|y| + 1)/|x|. ``entropies``: Ē at ``shortest``, ``shortest`` + 1, … slots (nats).
    ``bias``: a, b, c, d, e of :func:`confidence_curve`. ``line``: of |y| + 1 on |x|.
    """

    ratio_mean: float
    ratio_std: float
    shortest: int
    entropies: Sequence[float]
    bias: Sequence[float]
    line: LengthLine

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """From what :func:`~entropy_valley.canvas.training_pairs.length_statistics` measures."""
        ratio, entropy, bias = value["ratio"], value["expected_entropy"], value["confidence_bias"]
        line = LengthLine(*(value["line"][field.name] for field in fields(LengthLine)))
        curve = [bias[name] for name in "abcde"]
        return cls(ratio["mean"], ratio["std"], entropy["shortest"], entropy["values"], curve, line)

    def z(self, length: int, source_tokens: int) -> float:
        """How many standard deviations a canvas ratio lies above the mean; 0 where all pairs have the same ratio."""
        distance = length / max(1, source_tokens) - self.ratio_mean
        return distance / self.ratio_std if self.ratio_std else 0.0

    def expected_entropy(self, length: int) -> float:
        """Ē(L): the curve, held constant beyond its ends."""
        place = min(max(length - self.shortest, 0), len(self.entropies) - 1)
        return max(self.entropies[place], FLOOR)

    def confidence_bias(self, length: int) -> float:
        """B(L): the mean max-probability that a length has by itself."""
        return confidence_curve(length, *self.bias)


def confidence_curve(length: float, a: float, b: float, c: float, d: float, e: float) -> float:
    """a·e^(-bL) + c·e^(-dL) + e (CAL's length bias)."""
    return a * math.exp(-b * length) + c * math.exp(-d * length) + e
