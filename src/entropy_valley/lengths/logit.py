"""A conditional logit: which of several candidates is chosen, by a weighted sum of what is known of each.

P(i) = exp(-Σ wₖ·xᵢₖ) / Σⱼ exp(-Σ wₖ·xⱼₖ) over the candidates j of one choice (McFadden, 1974). The negative
log-likelihood is convex in the weights. Weights have the sign of a cost: the candidate of the lowest sum is the
likeliest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

FOLDS = 5  # of the choices, for held-out likelihoods
PRIOR = 10.0  # standard deviation of each weight's normal prior, for features of standard deviation 1: nearly none
DIGITS = 4  # significant digits of a weight: what is printed is what is used


@dataclass(frozen=True)
class Observed:
    """A choice that was made: the features of each candidate by name, and the place of the chosen one."""

    candidates: Sequence[Mapping[str, float]]
    chosen: int


def fit(choices: Sequence[Observed], features: Sequence[str]) -> dict[str, float]:
    """The weight of each feature, by maximum likelihood, in ``DIGITS`` significant digits.

    A normal prior keeps weights finite where candidates are told apart without an error. A feature that never differs
    between the candidates of a choice has the weight 0.
    """
    from scipy.optimize import minimize  # here: every start of Snakemake imports the length methods

    tables = [_table(choice, features) for choice in choices]
    within = np.concatenate([table - table.mean(0) for table in tables])
    scales = np.sqrt((within**2).mean(0))
    scales = np.where(scales > 1e-12, scales, np.inf)
    tables, chosen = [table / scales for table in tables], [choice.chosen for choice in choices]

    def cost(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = (weights @ weights) / (2 * PRIOR**2), weights / PRIOR**2
        for table, place in zip(tables, chosen, strict=True):
            shares = _shares(table, weights)
            total -= math.log(shares[place])
            slope = slope + table[place] - shares @ table
        return total, slope

    def curvature(weights: np.ndarray) -> np.ndarray:
        total = np.eye(len(features)) / PRIOR**2
        for table in tables:
            shares = _shares(table, weights)
            centred = table - shares @ table
            total += (centred * shares[:, None]).T @ centred
        return total

    start = np.zeros(len(features))
    found = minimize(cost, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-8})
    return {name: float(f"{weight:.{DIGITS}g}") for name, weight in zip(features, found.x / scales, strict=True)}


def probabilities(candidates: Sequence[Mapping[str, float]], weights: Mapping[str, float]) -> list[float]:
    """P of each candidate."""
    costs = [math.fsum(weight * features[name] for name, weight in weights.items()) for features in candidates]
    shares = [math.exp(min(costs) - cost) for cost in costs]
    return [share / math.fsum(shares) for share in shares]


def held_out(choices: Sequence[Observed], features: Sequence[str]) -> float:
    """The mean log-likelihood (nats) of each choice under weights that were fitted without its fold.

    Choice i is in fold i mod ``FOLDS``. Without features all candidates are equally likely.
    """
    total = 0.0
    for fold in range(min(FOLDS, len(choices))):
        rest = [choice for place, choice in enumerate(choices) if place % FOLDS != fold]
        weights = fit(rest, features) if rest and features else {}
        for choice in choices[fold::FOLDS]:
            total += math.log(max(probabilities(choice.candidates, weights)[choice.chosen], 1e-300))
    return total / len(choices)


def _table(choice: Observed, features: Sequence[str]) -> np.ndarray:
    return np.array([[candidate[name] for name in features] for candidate in choice.candidates], dtype=float)


def _shares(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    costs = table @ weights
    shares = np.exp(costs.min() - costs)
    return shares / shares.sum()
