"""Numbers as the paper prints them: scores with the decimals of their metric, gap closure in per cent with 1."""

from __future__ import annotations

import math
from collections.abc import Mapping

from entropy_valley.scoring.metrics import Metric

NOT_AVAILABLE = "n/a"
NONE = "–"  # a number that there is not


def mean_std(mean: float, std: float, decimals: int) -> str:
    """``0.8517 ± 0.0006``; a single run has no deviation and prints its value alone."""
    return number(mean, decimals) + ("" if math.isnan(mean) or math.isnan(std) else f" ± {std:.{decimals}f}")


def interval(value: float, low: float, high: float, decimals: int) -> str:
    """A difference with its confidence limits: ``+0.10 [−0.21, +0.40]``."""
    return f"{signed(value, decimals)} [{signed(low, decimals)}, {signed(high, decimals)}]"


def lead(test: Mapping[str, float], metric: Metric) -> str:
    """A paired difference with its confidence limits, in the decimals of the metric."""
    return interval(test["delta"], test["ci_low"], test["ci_high"], metric.decimals)


def number(value: float, decimals: int) -> str:
    """``0.8517``."""
    return NOT_AVAILABLE if math.isnan(value) else minus(f"{value:.{decimals}f}")


def percent(mean: float, std: float) -> str:
    """A share with its deviation: ``64.9 ± 7.4%``, or ``64.9%`` for a single run."""
    if math.isnan(mean):
        return NOT_AVAILABLE
    return minus(f"{100 * mean:.1f}%" if math.isnan(std) else f"{100 * mean:.1f} ± {100 * std:.1f}%")


def closure(mean: float, std: float, counted: int, runs: int) -> str:
    """A gap closure; says how many runs counted when some have no gap to close."""
    text = percent(mean, std)
    return text if counted in (0, runs) else f"{text} ({counted} of {runs} runs)"


def signed(value: float, decimals: int) -> str:
    """A difference, always with its sign: ``+0.0172``, ``−0.0010``."""
    return NOT_AVAILABLE if math.isnan(value) else minus(f"{value:+.{decimals}f}")


def p_value(p: float, resamples: int, sides: int = 2) -> str:
    """A bootstrap p-value: ``0.0910``; one that no resample speaks for is below the smallest that can be counted, a
    resample on each of the ``sides``: ``< 0.0002``, never 0."""
    return f"{p:.4f}" if p else f"< {sides / resamples:g}"


def p_statement(p: float, resamples: int) -> str:
    """``p = 0.0910``, or ``p < 0.0002``: two-sided, as all that tables print."""
    return f"p {'= ' if p else ''}{p_value(p, resamples)}"


def parameters(count: int) -> str:
    """``8.0B``, ``1.2M``."""
    return f"{count / 1e9:.1f}B" if count >= 1e8 else f"{count / 1e6:.1f}M"


def small_p(p: float) -> str:
    """A p-value that is computed, not counted: ``0.0083``, or ``4.1e−32`` below 0.001."""
    return minus(f"{p:.4f}" if p >= 0.001 else f"{p:.1e}")


def stars(p: float) -> str:
    """:func:`small_p` with a star below 0.05, two below 0.01, three below 0.001, as the paper prints them."""
    return small_p(p) + "*" * sum(p < level for level in (0.05, 0.01, 0.001))


def minus(text: str) -> str:
    """The hyphens of numbers as minus signs."""
    return text.replace("-", "−")
