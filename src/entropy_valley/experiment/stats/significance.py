"""Paired tests of two systems on the same sentences: bootstrap, Wilcoxon signed-rank, Cohen's d."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, PositiveInt

from entropy_valley.settings import RandomSeed, Section

Zeros = Literal["pratt", "wilcox"]
Deviation = Literal["sample", "population"]
LEVELS = (0.025, 0.975)  # quantiles of a percentile bootstrap: its 95 % limits
ROUNDING = 1e-12  # a difference or a mean closer to 0 is 0: sums of floating-point numbers miss it by about 1e-17
# Of so few differences `scipy.stats.wilcoxon` tries all signs, too, but one by one: it takes seconds.
ALL_SIGNS = 13
CHUNK_VALUES = 1_000_000  # sentence draws held at once: 16 MB, whatever the number of sentences


class Analysis(Section):
    """Statistics."""

    resamples: PositiveInt = Field(le=1_000_000, description="of the paired bootstrap")
    seed: RandomSeed = Field(description="of its draws")
    generator: Literal["pcg64", "random_state"] = Field(
        "pcg64", description="of its draws: NumPy's default, or that of `RandomState`, as in the authors' code"
    )
    wilcoxon_zeros: Zeros = Field(
        "pratt", description="sentences on which two systems are equal: ranked, then dropped (Pratt), or left out"
    )
    cohen: Deviation = Field(
        "sample", description="standard deviation in Cohen's d: of a sample, or of the population, as in their code"
    )


BOOTSTRAP = ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")  # of a paired test


def paired_test(first: ArrayLike, second: ArrayLike, how: Analysis) -> dict[str, float]:
    """First minus second system over one run's sentences; both have the scores of the same (sentences,) in one order.

    ``ci_low`` and ``ci_high`` are the percentile bootstrap's 95 % limits of the mean difference ``delta``.
    ``p_one_sided`` is the share of resamples with a mean difference <= 0, ``p_two_sided`` twice the smaller of the
    shares on either side of zero, at most 1. Either may be exactly 0: it then means less than 1/``resamples``, and
    two-sided less than twice that. All four are NaN for a single sentence, which says nothing of a spread.
    ``wilcoxon_p`` and ``cohens_d`` are those of the functions below; ``sentences`` and ``resamples`` are counts.

    The bootstrap draws sentences with a generator of its own: two tests over equally many sentences see the same
    resamples, and a test does not depend on those before it.
    """
    differences = _rounded(np.asarray(first, dtype=float) - np.asarray(second, dtype=float))
    means = bootstrap_means(differences, how)
    low, high = np.quantile(means, LEVELS)
    # A mean of exactly 0 counts on both sides.
    not_above, not_below = float(np.mean(means <= 0)), float(np.mean(means >= 0))
    if len(differences) == 1:  # each resample is the sentence itself
        low = high = not_above = not_below = math.nan
    return {
        "delta": float(_rounded(differences.mean())),
        "ci_low": low,
        "ci_high": high,
        "p_one_sided": not_above,
        "p_two_sided": np.minimum(1.0, 2 * min(not_above, not_below)),
        "wilcoxon_p": wilcoxon_p(differences, how.wilcoxon_zeros),
        "cohens_d": cohens_d(differences, how.cohen),
        "sentences": len(differences),
        "resamples": how.resamples,
    }


def bootstrap_means(differences: np.ndarray, how: Analysis) -> np.ndarray:
    """Means of samples drawn with replacement from differences of shape (sentences,), or (sentences, values) to draw
    several together; shape (resamples,) or (resamples, values).

    Works through chunks of bounded size; their number changes neither the draws nor the means. A mean that only
    :data:`ROUNDING` keeps from 0 is 0: whether a limit is above 0 may depend on it.
    """
    count = len(differences)
    chunk = max(1, CHUNK_VALUES // count)
    sizes = [min(chunk, how.resamples - start) for start in range(0, how.resamples, chunk)]
    is_legacy = how.generator == "random_state"
    draw = np.random.RandomState(how.seed).randint if is_legacy else np.random.default_rng(how.seed).integers
    return _rounded(np.concatenate([differences[draw(0, count, size=(size, count))].mean(axis=1) for size in sizes]))


def wilcoxon_p(differences: np.ndarray, zeros: Zeros = "pratt") -> float:
    """Two-sided Wilcoxon signed-rank p. Zeros are ranked, then dropped (Pratt, 1959), or dropped at once (``wilcox``).

    1 when all are zero. Of up to :data:`ALL_SIGNS` differences the p-value is exact, ties or zeros among them or not.
    """

    import scipy.stats

    if not differences.any():
        return 1.0
    if not 1 < len(differences) <= ALL_SIGNS:
        return float(scipy.stats.wilcoxon(differences, zero_method=zeros, alternative="two-sided").pvalue)
    dropped = np.count_nonzero(differences == 0) if zeros == "wilcox" else 0  # they had the lowest ranks
    signed = np.sign(differences) * (scipy.stats.rankdata(np.abs(differences)) - dropped)
    test = scipy.stats.permutation_test((signed,), np.sum, permutation_type="samples", n_resamples=2**ALL_SIGNS)
    return float(test.pvalue)


def spearman(first: ArrayLike, second: ArrayLike) -> tuple[float, float]:
    """Spearman's ρ and its two-sided p; NaN where one of both is constant, and for fewer than three values: ρ of two is
    1 or −1."""
    import scipy.stats

    if np.size(first) < 3 or min(np.unique(first).size, np.unique(second).size) < 2:
        return math.nan, math.nan
    test = scipy.stats.spearmanr(first, second)
    return float(test.statistic), float(test.pvalue)


def cohens_d(differences: np.ndarray, deviation: Deviation = "sample") -> float:
    """Paired Cohen's d: mean difference over the differences' standard deviation, of a sample or of the population.

    0 when all differences are zero; NaN without a deviation: for a single sentence, and when they are equal but not 0.
    """
    if len(differences) < 2 or np.ptp(differences) < ROUNDING:
        return 0.0 if len(differences) > 1 and not differences.any() else math.nan
    return float(differences.mean() / differences.std(ddof=deviation == "sample"))


def _rounded(values: np.ndarray) -> np.ndarray:
    """The values, 0 where they are less than :data:`ROUNDING` from it."""
    return np.where(np.abs(values) < ROUNDING, 0.0, values)
