import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from entropy_valley.experiment.stats import significance
from entropy_valley.experiment.stats.significance import Analysis, bootstrap_means, paired_test

SCORES = st.floats(-1, 1, allow_nan=False).map(lambda value: round(value, 4))
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=40)


def how(resamples=10_000, seed=0, **others):
    return Analysis(resamples=resamples, seed=seed, **others)


def test_interval_agrees_with_scipy():
    differences = np.random.default_rng(0).normal(0.01, 0.1, 300)
    ours = paired_test(differences, np.zeros(300), how(9999, 1))
    theirs = stats.bootstrap((differences,), np.mean, method="percentile", rng=2).confidence_interval
    assert (ours["ci_low"], ours["ci_high"]) == pytest.approx((theirs.low, theirs.high), abs=5e-4)


def test_equal_systems():
    test = paired_test([0.5, 0.7, 0.9], [0.5, 0.7, 0.9], how(100))
    assert (test["delta"], test["ci_low"], test["ci_high"], test["cohens_d"]) == (0, 0, 0, 0)
    assert (test["p_one_sided"], test["p_two_sided"], test["wilcoxon_p"]) == (1, 1, 1)


def test_a_single_sentence_says_nothing_of_a_spread():
    test = paired_test([0.9], [0.4], how(100))
    assert all(
        map(math.isnan, (test["ci_low"], test["ci_high"], test["p_one_sided"], test["p_two_sided"], test["cohens_d"]))
    )
    assert (test["delta"], test["wilcoxon_p"], test["sentences"]) == (0.5, 1, 1)


TENTHS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=26)


@settings(max_examples=60, deadline=None)
@given(TENTHS)
def test_a_mean_of_exactly_zero_is_zero(pairs):
    """Sums of tenths miss 0 in floating point; shares and limits are those of whole numbers."""
    first, second = (np.array(scores) for scores in zip(*pairs, strict=True))
    test = paired_test(first / 10, second / 10, how(400, 3))
    exact = bootstrap_means(10 * (first - second), how(400, 3))
    low, high = np.quantile(exact, (0.025, 0.975))
    assert test["p_one_sided"] == np.mean(exact <= 0)
    assert test["p_two_sided"] == min(1, 2 * min(np.mean(exact <= 0), np.mean(exact >= 0)))
    assert (test["delta"], test["ci_low"], test["ci_high"]) == pytest.approx(
        ((first - second).mean() / 10, low / 100, high / 100)
    )
    assert (test["ci_low"] > 0, test["ci_high"] < 0) == (low > 0, high < 0)


DRAW = np.random.default_rng(7)
FEW = [DRAW.integers(-3, 4, count) / 10 for count in [*range(1, 9)] * 2] + [np.array([0.2, 0.0]), -np.ones(4)]


@pytest.mark.parametrize("zeros", ["pratt", "wilcox"])
@pytest.mark.parametrize("differences", [*FEW, DRAW.normal(size=7), DRAW.integers(-3, 4, 14)], ids=len)
def test_of_few_sentences_wilcoxons_p_is_that_of_scipy(differences, zeros):
    """The very number, ties and zeros or not."""
    expected = stats.wilcoxon(differences, zero_method=zeros).pvalue if differences.any() else 1
    assert significance.wilcoxon_p(differences, zeros) == expected


AUTHORS = how(300, 42, generator="random_state", wilcoxon_zeros="wilcox", cohen="population")


def by_the_authors_code(differences, resamples, seed):
    """Their test in a plain loop: a draw of sentences at a time. Theirs leaves means of 0 to chance, ours does not."""
    generator, means = np.random.RandomState(seed), []
    for _ in range(resamples):
        means.append(differences[generator.randint(0, len(differences), size=len(differences))].mean())
    p = 1 - sum(mean > 1e-12 for mean in means) / resamples
    d = differences.mean() / differences.std()
    return p, np.percentile(means, [2.5, 97.5]), stats.wilcoxon(differences).pvalue, d


@pytest.mark.parametrize("chunk", [1_000_000, 7 * 60])
def test_a_plain_writing_of_the_authors_tests_agrees(monkeypatch, chunk):
    monkeypatch.setattr(significance, "CHUNK_VALUES", chunk)
    differences = np.round(np.random.default_rng(5).normal(0.05, 0.4, 60), 1)  # some are zero
    p, interval, wilcoxon, d = by_the_authors_code(differences, 300, 42)
    test = paired_test(differences, np.zeros(60), AUTHORS)
    assert test["p_one_sided"] == pytest.approx(p, abs=1e-12) and 0 < p < 1
    assert (test["ci_low"], test["ci_high"]) == pytest.approx(tuple(interval), abs=1e-12)
    assert (test["wilcoxon_p"], test["cohens_d"]) == (wilcoxon, d)


@pytest.mark.parametrize("scores", [[0.5, 0.75, 1.0], [0.3, 0.7, 0.9]])  # the differences of the latter round apart
def test_cohens_d_has_no_unit_where_all_differences_are_the_same(scores):
    test = paired_test(np.array(scores) + 0.1, scores, how(100))
    assert math.isnan(test["cohens_d"]) and test["delta"] == pytest.approx(0.1)


@settings(max_examples=10)
@given(PAIRS)
def test_swapping_the_systems_mirrors_the_test(pairs):
    first, second = np.array(pairs).T
    one, other = (paired_test(a, b, how(100, 4)) for a, b in ((first, second), (second, first)))
    assert one["delta"] == -other["delta"]
    assert (one["ci_low"], one["ci_high"]) == pytest.approx((-other["ci_high"], -other["ci_low"]))
    assert (one["p_two_sided"], one["wilcoxon_p"]) == (other["p_two_sided"], pytest.approx(other["wilcoxon_p"]))
