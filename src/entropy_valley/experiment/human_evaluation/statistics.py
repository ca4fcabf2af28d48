"""What the ratings of a pack say: differences, preferences, tests, agreement of annotators, the metric beside them.

Everything is of the first system minus the second. A sentence is the unit of each test: ratings of several annotators
are averaged first, never pooled as if they were different sentences.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from entropy_valley.experiment.human_evaluation.pack import SCALES, SYSTEMS
from entropy_valley.experiment.stats.significance import Analysis, cohens_d, paired_test, spearman, wilcoxon_p

PREFERENCES = (*SYSTEMS, "tie")
LEVEL, POWER = 0.05, 0.8
EFFICIENCY = 3 / math.pi  # of Wilcoxon's test against the t test, for normal differences (Hodges and Lehmann, 1956)


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of ``ratings.jsonl``, a column for each score: ``first_adequacy``, …, and each difference."""
    table = pd.json_normalize(list(rows), sep="_")
    for scale in SCALES:
        table[scale] = table[f"first_{scale}"] - table[f"second_{scale}"]
    return table


def of_annotator(ratings: pd.DataFrame, how: Analysis) -> dict[str, float]:
    """Mean differences, Wilcoxon's p of each scale, and preferences of the rows of one annotator."""
    values: dict[str, float] = {"sentences": len(ratings)}
    for scale in SCALES:
        values[scale] = float(ratings[scale].mean())
        values[f"{scale}_p"] = wilcoxon_p(ratings[scale].to_numpy(), how.wilcoxon_zeros)
    return values | _counts(ratings["preference"])


def of_all(ratings: pd.DataFrame, how: Analysis) -> dict[str, float]:
    """The same of the mean over annotators of each sentence, and of their majority; and what only all together have.

    ``…_low`` and ``…_high`` are the percentile bootstrap's limits of a difference, ``sign_p`` is the two-sided sign
    test of majorities without ties, ``…_needed`` see :func:`needed`.
    """
    means = ratings.groupby("id")[[*SCALES, "difference"]].mean()
    # A sentence is one unit, however many people rated it.
    choices = ratings.groupby("id")["preference"].agg(lambda given: majority(given.tolist()))
    values: dict[str, float] = {"sentences": len(means), **_counts(choices)}
    for scale in SCALES:
        test = paired_test(means[scale].to_numpy(), [0.0] * len(means), how)
        values |= {scale: test["delta"], f"{scale}_low": test["ci_low"], f"{scale}_high": test["ci_high"]}
        values |= {f"{scale}_p": test["wilcoxon_p"], f"{scale}_needed": needed(means[scale].to_numpy())}
    return values | {"sign_p": sign_p(values["first"], values["second"])} | correlations(means)


def majority(choices: Sequence[str]) -> str:
    """What more than half of the annotators chose; where nobody has that, as in a three-way split, it is a tie."""
    choice, count = Counter(choices).most_common(1)[0]
    # Half is no majority.
    return choice if 2 * count > len(choices) else "tie"


def sign_p(first: float, second: float) -> float:
    """Two-sided p of the sign test: sentences won by the first and by the second system, ties left out."""
    import scipy.stats

    wins, losses = int(first), int(second)
    return float(scipy.stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def correlations(means: pd.DataFrame) -> dict[str, float]:
    """Spearman's ρ of the metric's difference with that of each scale, and its p; NaN where one of them is constant,
    and for fewer than three sentences: ρ of two is 1 or −1."""
    values = {}
    for scale in SCALES:
        values[f"{scale}_rho"], values[f"{scale}_rho_p"] = spearman(means["difference"], means[scale])
    return values


def agreement(ratings: pd.DataFrame) -> dict[str, float]:
    """Agreement between annotators on the sentences that all of them rated; NaN for a single annotator.

    ``kappa``: Fleiss' κ of preferences. ``w_low`` and ``w_high``: the range of Kendall's W, with ties, of the ranks of
    sentences in each of the four scores. ``…_alpha``: Krippendorff's α, ordinal for scores and nominal for preferences.
    """
    annotators = ratings["annotator"].nunique()
    complete = ratings.groupby("id")["annotator"].transform("nunique") == annotators
    # Coefficients without missing values need every rating of a sentence.
    shared = ratings[complete]
    if annotators < 2 or shared["id"].nunique() < 2:
        alphas = [f"{name}_alpha" for name in (*SCALES, "preference")]
        return dict.fromkeys(("kappa", "w_low", "w_high", *alphas), math.nan)
    chosen = shared.assign(choice=shared["preference"].map(PREFERENCES.index))
    wide = chosen.pivot(index="id", columns="annotator")
    choices = wide["choice"].to_numpy()
    # Four scores: two systems on two scales.
    concordances = [kendall_w(wide[f"{system}_{scale}"].to_numpy()) for system in SYSTEMS for scale in SCALES]
    values = {"kappa": fleiss_kappa(choices), "w_low": min(concordances), "w_high": max(concordances)}
    for scale in SCALES:
        values[f"{scale}_alpha"] = alpha(np.vstack([wide[f"{system}_{scale}"] for system in SYSTEMS]), "ordinal")
    return values | {"preference_alpha": alpha(choices, "nominal")}


def fleiss_kappa(choices: np.ndarray) -> float:
    """Fleiss' κ (1971) of (sentences, annotators) categories, by statsmodels; 1 where there is one category only."""
    from statsmodels.stats import inter_rater

    if len(np.unique(choices)) == 1:
        return 1.0
    return float(inter_rater.fleiss_kappa(inter_rater.aggregate_raters(choices)[0]))


def kendall_w(scores: np.ndarray) -> float:
    """Kendall's coefficient of concordance of (sentences, annotators) scores, corrected for ties.

    Friedman's χ², which scipy corrects for ties, is W · annotators · (sentences - 1). NaN for fewer than three
    sentences, or where each annotator gave one score to all.
    """
    import scipy.stats

    sentences, annotators = scores.shape
    if sentences < 3 or all(len(set(column)) == 1 for column in scores.T):
        return math.nan
    return float(scipy.stats.friedmanchisquare(*scores).statistic / (annotators * (sentences - 1)))


def alpha(values: np.ndarray, level: str) -> float:
    """Krippendorff's α (2011) of (units, annotators) values, NaN where an annotator gave none; ``level`` is nominal or
    ordinal. 1 where there is one value only, NaN where no unit has two.
    """
    given = np.unique(values[~np.isnan(values)])
    counts = (values[:, :, None] == given).sum(axis=1)  # (units, values): by how many annotators
    # A unit with a single value has nothing to agree with.
    counts = counts[counts.sum(axis=1) > 1]
    shares = counts / (counts.sum(axis=1, keepdims=True) - 1)
    coincidences = counts.T @ shares - np.diag(shares.sum(axis=0))
    totals = coincidences.sum(axis=0)
    if level == "ordinal":
        # An ordinal distance counts the values between two, and half of each end.
        ranks = totals.cumsum() - totals / 2
        distances = (ranks[:, None] - ranks) ** 2
    else:
        distances = 1 - np.eye(len(given))
    observed, expected = (coincidences * distances).sum(), (np.outer(totals, totals) * distances).sum()
    # All values are the same: nobody could have disagreed.
    if not expected:
        return 1.0 if len(counts) else math.nan
    return float(1 - (totals.sum() - 1) * observed / expected)


def needed(differences: np.ndarray) -> float:
    """Sentences that a two-sided Wilcoxon test at 5 % needs to find the observed effect with 80 % power.

    That of the paired t test for the observed Cohen's d, divided by the tests' relative efficiency for normal
    differences. It takes the observed effect for the true one. Infinite without an effect, NaN without a deviation.
    """
    from statsmodels.stats import power

    # Without any difference the effect is not 0 but unknown.
    effect = abs(cohens_d(differences)) if differences.any() else math.nan
    if math.isnan(effect):
        return math.nan
    if not effect:
        return math.inf
    sentences = power.TTestPower().solve_power(effect_size=effect, alpha=LEVEL, power=POWER)
    return float(math.ceil(np.max(sentences) / EFFICIENCY))


def _counts(choices: pd.Series) -> dict[str, float]:
    return {name: int((choices == name).sum()) for name in PREFERENCES}
