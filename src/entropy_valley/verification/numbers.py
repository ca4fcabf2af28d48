"""The statistics of the tables, written again from docs/protocol.md: by numpy and scipy alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entropy_valley.errors import InputError, brief

NAN = math.nan
ROUNDING = 1e-12  # sums of floating-point numbers miss 0 by about 1e-17
MOST_DRAWS = 2**31  # of a bootstrap


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else NAN


def deviation(values: Sequence[float]) -> float:
    """The sample standard deviation; a single value has none."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else NAN


def snapped(values: Any) -> Any:
    """0 where only rounding keeps a number from it."""
    return np.where(np.abs(values) < ROUNDING, 0.0, values)


def closure(score: float, ratio: float, oracle: float) -> float:
    """The share of Oracle's lead over a fixed ratio that a system closes; NaN where Oracle does not lead."""
    gap = oracle - ratio
    return (score - ratio) / gap if gap > 1e-9 * max(abs(oracle), abs(ratio)) else NAN


def resampled_means(values: np.ndarray, how: Mapping[str, Any]) -> np.ndarray:
    """The means of sentences that are drawn with replacement; ``values`` has shape (sentences,) or (sentences, k)."""
    resamples, seed, generator = how["resamples"], how["seed"], how["generator"]
    if not isinstance(resamples, int) or not 0 < resamples * len(values) <= MOST_DRAWS:
        problem = f"{brief(resamples)} resamples of {len(values):,} sentences, more than {MOST_DRAWS:,} draws or none"
        raise InputError("the record of a table", problem, "Make the table again with fewer `analysis.resamples`.")
    draw = np.random.RandomState(seed).randint if generator == "random_state" else np.random.default_rng(seed).integers
    count, means = len(values), []
    for start in range(0, resamples, 100):
        places = draw(0, count, size=(min(100, resamples - start), count))
        means.append(values[places].mean(axis=1))
    return snapped(np.concatenate(means))


def paired(first: Sequence[float], second: Sequence[float], how: Mapping[str, Any]) -> dict[str, float]:
    """First minus second system, sentence by sentence: the paired bootstrap, Wilcoxon's test, Cohen's d."""
    lead = snapped(np.asarray(first, dtype=float) - np.asarray(second, dtype=float))
    test = _paired(lead.tobytes(), *(how[key] for key in ("resamples", "seed", "generator", "cohen", "wilcoxon_zeros")))
    return {**test, "sentences": len(lead), "resamples": how["resamples"], "bootstrap_seed": how["seed"]}


@functools.lru_cache(maxsize=4096)  # several tables have the same test
def _paired(leads: bytes, resamples: int, seed: int, generator: str, cohen: str, zeros: str) -> dict[str, float]:
    import scipy.stats

    lead = np.frombuffer(leads)
    means = resampled_means(lead, {"resamples": resamples, "seed": seed, "generator": generator})
    low, high = np.quantile(means, [0.025, 0.975])
    below, above = float(np.mean(means <= 0)), float(np.mean(means >= 0))
    if len(lead) < 2:
        effect = NAN
    elif np.ptp(lead) == 0:  # all the same: no spread, or only that of rounding
        effect = 0.0 if lead[0] == 0 else math.copysign(math.inf, lead[0])
    else:
        effect = float(lead.mean()) / float(np.std(lead, ddof=int(cohen == "sample")))
    wilcoxon = scipy.stats.wilcoxon(lead, zero_method=zeros).pvalue if lead.any() else 1.0
    return {
        "delta": float(snapped(lead.mean())),
        "ci_low": float(low),
        "ci_high": float(high),
        "p_one_sided": below,
        "p_two_sided": min(1.0, 2 * min(below, above)),
        "wilcoxon_p": float(wilcoxon),
        "cohens_d": effect,
    }


def spearman(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Spearman's ρ; NaN where one of the two is constant, or for fewer than three values."""
    import scipy.stats

    if len(first) < 3 or len({*first}) < 2 or len({*second}) < 2:
        return {"spearman_rho": NAN, "spearman_p": NAN}
    test = scipy.stats.spearmanr(first, second)
    return {"spearman_rho": float(test.statistic), "spearman_p": float(test.pvalue)}


def closure_limits(values: np.ndarray, how: Mapping[str, Any]) -> tuple[float, float]:
    """95 % limits of the closure of mean scores; ``values``: system, ratio and Oracle, shape (sentences, 3)."""
    closures = np.array([closure(*row) for row in resampled_means(values, how)])
    if np.isnan(closures).mean() > 0.025:
        return NAN, NAN
    low, high = np.nanquantile(closures, [0.025, 0.975])
    return float(low), float(high)
