"""Length statistics from what was measured on training pairs; plain numbers in, the JSON of their file out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import curve_fit

from entropy_valley.errors import InputError

LENGTHS = (1, 2, 4, 6, 12, 16, 24, 32, 48, 64, 96, 128)  # where CAL's bias is measured
NEAR = 4  # slots around the true length that CAL leaves out: there confidence is not bias alone
PUBLIC_BIAS = (1.00, 1.77, 0.56, 0.06, 0.24)  # a, b, c, d, e as published; the fit starts here
BANDWIDTH = 0.15  # of the smoother, in log length: pairs 15 % longer or shorter still count for much


def ratio_moments(pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Mean and sample standard deviation of (|y| + 1)/|x| over pairs of token counts (|x|, |y|)."""
    ratios = [(target + 1) / source for source, target in pairs if source]
    if not ratios:
        raise InputError("length statistics", "no training pair has a source", "Give a corpus of sentence pairs.")
    mean = math.fsum(ratios) / len(ratios)
    squares = math.fsum((ratio - mean) ** 2 for ratio in ratios)
    return {"mean": mean, "std": math.sqrt(squares / max(1, len(ratios) - 1)), "pairs": len(ratios)}


def length_line(pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
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


def expected_entropies(points: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """Ē at every integer length between the shortest and the longest of the (length, mean entropy) points.

    Smoothed by a kernel regression (Nadaraya and Watson): the mean of all points, weighted by a Gaussian of bandwidth
    ``BANDWIDTH`` in log length. It never leaves the range of the points, and rare lengths borrow from their neighbours.
    """
    if not points:
        raise InputError("length statistics", "no training pair fits the context", "Give shorter pairs.")
    first, last = min(points)[0], max(points)[0]
    values = [_kernel_mean(length, points) for length in range(first, last + 1)]
    return {"shortest": first, "values": values, "pairs": len(points), "bandwidth": BANDWIDTH}


def _kernel_mean(length: int, points: Sequence[tuple[int, float]]) -> float:
    distances = [((math.log(length) - math.log(other)) / BANDWIDTH) ** 2 / 2 for other, _ in points]
    nearest = min(distances)  # weights are relative to the nearest point's: in a wide gap all would be 0
    weights = [math.exp(nearest - distance) for distance in distances]
    return math.fsum(w * value for w, (_, value) in zip(weights, points, strict=True)) / math.fsum(weights)


def confidence_bias(points: Iterable[tuple[int, float]]) -> dict[str, Any]:
    """B's five parameters, none negative, from (length, mean max-probability) of all-mask canvases.

    Least squares on the mean of each length, weighted by the root of how many canvases it is the mean of.
    Raises InputError for fewer than five lengths, and where the fit does not end.
    """
    means = _means(points)
    if len(means) < len(PUBLIC_BIAS):
        raise InputError(
            "length statistics",
            f"confidences at {len(means)} lengths, the bias curve has five parameters",
            "Give more training pairs, or a backbone of longer context.",
        )
    curve = dict(zip("abcde", _fit(means), strict=True))
    return {**curve, "points": [{"length": length, "mean": mean, "canvases": n} for length, mean, n in means]}


def _means(points: Iterable[tuple[int, float]]) -> list[tuple[int, float, int]]:
    """(length, mean, how many), by length."""
    groups: dict[int, list[float]] = {}
    for length, value in points:
        groups.setdefault(length, []).append(value)
    return [(length, math.fsum(values) / len(values), len(values)) for length, values in sorted(groups.items())]


def _fit(means: Sequence[tuple[int, float, int]]) -> list[float]:
    def curve(length: Any, a: float, b: float, c: float, d: float, e: float) -> Any:
        return a * np.exp(-b * length) + c * np.exp(-d * length) + e

    lengths, confidences, counts = (np.array(column, dtype=float) for column in zip(*means, strict=True))
    try:
        found, _ = curve_fit(
            curve, lengths, confidences, PUBLIC_BIAS, 1 / np.sqrt(counts), bounds=(0, np.inf), max_nfev=20_000
        )
    except RuntimeError as error:
        raise InputError("length statistics", f"no bias curve fits ({error})", "Give more training pairs.") from None
    return found.tolist()
