"""What length methods may know of training pairs: their lengths, and a backbone's confidence at each length."""

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from entropy_valley.errors import InputError
from entropy_valley.model.prompt import PLACE, Prompt
from entropy_valley.settings import JsonObject

PERCENTILES = (10, 30, 50, 70, 90)  # five ratios for the grid of EV: the ends, the middle and two between


def length_ratios(pairs: Iterable[Mapping[str, str]], tokenizer: Any) -> dict[str, float]:
    """Median, mean and number of the ratios |y|/|x| of pairs ``{source, target}``, in tokens without special ones, and
    their :data:`PERCENTILES`: ``p10`` and so on.

    Raises InputError where no source has a token.
    """
    tokens, ratios = Prompt(PLACE, tokenizer).tokens, []
    for pair in pairs:
        source, target = len(tokens(pair["source"])), len(tokens(pair["target"]))
        if source:
            ratios.append(target / source)
    if not ratios:
        raise InputError("length ratios", "no training pair has a source", "Give a corpus of sentence pairs.")
    ratio = {"median": statistics.median(ratios), "mean": math.fsum(ratios) / len(ratios), "pairs": len(ratios)}
    values = np.percentile(ratios, PERCENTILES).tolist()
    return ratio | {f"p{percent}": value for percent, value in zip(PERCENTILES, values, strict=True)}


@dataclass(frozen=True)
class LengthLine:
    """|y| + 1 as a line in |x|: ``intercept`` + ``slope``·|x| slots, with a variance of ``variance``·|x|."""

    intercept: float
    slope: float
    variance: float

    def expected(self, source_tokens: int) -> float:
        """The canvas length on the line, in slots."""
        return self.intercept + self.slope * source_tokens

    def z(self, length: int, source_tokens: int) -> float:
        """How many standard deviations a canvas lies beyond the line; 0 where all pairs lie on it."""
        spread = math.sqrt(self.variance * max(1, source_tokens))
        return (length - self.expected(source_tokens)) / spread if spread else 0.0


@dataclass(frozen=True)
class LengthStatistics:
    """Measured on training pairs; each part is None unless a length method of the job uses it.

    ``line``: of |y| + 1 on |x|. ``bias``: a, b, c, d, e of :func:`confidence_curve`, by one run's checkpoint.
    """

    line: LengthLine | None = None
    bias: Sequence[float] | None = None

    @classmethod
    def of(cls, value: JsonObject) -> Self:
        """From what :meth:`~entropy_valley.translation.fits.Pairs.statistics` measures."""
        line, bias = value.get("line"), value.get("confidence_bias")
        return cls(
            line and LengthLine(line["intercept"], line["slope"], line["variance"]),
            bias and [bias[name] for name in "abcde"],
        )


def confidence_curve(length: Any, a: float, b: float, c: float, d: float, e: float, exp: Any = math.exp) -> Any:
    """B(L), the mean max-probability that a length has by itself: a·e^(-bL) + c·e^(-dL) + e (CAL's length bias).

    With ``exp=np.exp`` of an array of lengths.
    """
    return a * exp(-b * length) + c * exp(-d * length) + e


# --- Length statistics from what was measured on training pairs; plain numbers in, the JSON of their file out.

LENGTHS = (1, 2, 4, 6, 12, 16, 24, 32, 48, 64, 96, 128)  # where CAL's bias is measured
NEAR = 4  # slots around the true length that CAL leaves out: there confidence is not bias alone
PUBLIC_BIAS = (1.00, 1.77, 0.56, 0.06, 0.24)  # a, b, c, d, e as published; the fit starts here


def length_line(pairs: Sequence[tuple[int, int]]) -> JsonObject:
    """|y| + 1 = ``intercept`` + ``slope``·|x| and the residuals' variance over |x|, from pairs of counts (|x|, |y|).

    Least squares weighted by 1/|x|: a longer sentence's length varies more. Where all sources are equally long the line
    goes through the origin.
    """
    points = [(source, target + 1) for source, target in pairs if source]
    if not points:
        raise InputError("length statistics", "no training pair has a source", "Give a corpus of sentence pairs.")
    count, inverse = len(points), math.fsum(1 / x for x, _ in points)
    sources, lengths, ratios = (math.fsum(column) for column in zip(*((x, y, y / x) for x, y in points), strict=True))
    determinant = inverse * sources - count**2
    if determinant > 1e-9 * count**2:
        intercept = (ratios * sources - count * lengths) / determinant
        slope = (inverse * lengths - count * ratios) / determinant
    else:
        intercept, slope = 0.0, lengths / sources
    squares = math.fsum((y - intercept - slope * x) ** 2 / x for x, y in points)
    return {"intercept": intercept, "slope": slope, "variance": squares / max(1, count - 2), "pairs": count}


def confidence_bias(points: Iterable[tuple[int, float]]) -> JsonObject:
    """B's five parameters, none negative, from (length, mean max-probability) of all-mask canvases.

    Least squares on the mean of each length, weighted by the root of how many canvases it is the mean of.
    Raises InputError for fewer than five lengths, and where the fit does not end.
    """
    groups: dict[int, list[float]] = {}
    for length, value in points:
        groups.setdefault(length, []).append(value)
    means = [(length, math.fsum(values) / len(values), len(values)) for length, values in sorted(groups.items())]
    if len(means) < len(PUBLIC_BIAS):
        raise InputError(
            "length statistics",
            f"confidences at {len(means)} lengths, the bias curve has five parameters",
            "Give more training pairs, or a backbone of longer context.",
        )
    from scipy.optimize import curve_fit  # here: every start of Snakemake imports the length methods

    curve = functools.partial(confidence_curve, exp=np.exp)
    lengths, confidences, counts = (np.array(column, dtype=float) for column in zip(*means, strict=True))
    try:
        parameters, _ = curve_fit(
            curve, lengths, confidences, PUBLIC_BIAS, 1 / np.sqrt(counts), bounds=(0, np.inf), max_nfev=20_000
        )
    except RuntimeError as error:
        raise InputError("length statistics", f"no bias curve fits ({error})", "Give more training pairs.") from None
    bias = dict(zip("abcde", parameters.tolist(), strict=True))
    return {**bias, "points": [{"length": length, "mean": mean, "canvases": n} for length, mean, n in means]}
