"""Statistics of ratings: constructed ratings of known agreement and effect, and worked examples from the literature."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from entropy_valley.experiment.human_evaluation import statistics
from entropy_valley.experiment.stats.significance import Analysis

HOW = Analysis(resamples=500, seed=1)


def rows(scores, preferences=None, annotators="ABC", difference=None):
    """Rows of ``ratings.jsonl``: ``scores[annotator][sentence]`` is (first, second), for both scales."""
    return [
        {
            "annotator": name,
            "id": f"p-{number}",
            "testset_id": f"t-{number}",
            "bucket": "random",
            "difference": number / 10 if difference is None else difference[number],
            "first": {"adequacy": first, "fluency": first},
            "second": {"adequacy": second, "fluency": second},
            "preference": preferences[place][number] if preferences else "tie",
            "notes": "",
        }
        for place, name in enumerate(annotators)
        for number, (first, second) in enumerate(scores[place])
    ]


def random_scores(seed, annotators=3, sentences=200):
    return np.random.default_rng(seed).integers(1, 6, size=(annotators, sentences, 2)).tolist()


class TestAgreement:
    def test_only_sentences_that_all_rated_count(self):
        scores = random_scores(4)
        whole = statistics.frame(rows(scores))
        partial = whole[~((whole["annotator"] == "B") & whole["id"].isin(["p-0", "p-1"]))]
        without = whole[~whole["id"].isin(["p-0", "p-1"])]
        assert statistics.agreement(partial) == pytest.approx(statistics.agreement(without))

    def test_fleiss_kappa_of_his_kind_of_table(self):
        """Fleiss (1971) as worked through in textbooks: 10 subjects, 14 raters, 5 categories, κ = 0.210."""
        counts = [
            (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
            (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
        ]  # fmt: skip
        choices = np.array([np.repeat(range(5), row) for row in counts])
        assert statistics.fleiss_kappa(choices) == pytest.approx(0.210, abs=5e-4)

    @pytest.mark.parametrize(
        ("annotators", "nominal", "ordinal"),
        [
            (("aabbdcccedda", "babbbccceddd"), 0.692, None),
            (("123321412...", "1233224125.3", ".3332342251.", "12332441251."), 0.743, 0.815),
            ((".....34121133.3", "1.213343.......", "..21344.21133.4"), 0.691, 0.807),
        ],
        ids=["two", "four", "three"],
    )
    def test_krippendorffs_alpha_of_published_examples(self, annotators, nominal, ordinal):
        """Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability"; the last one is Wikipedia's. A character
        is a value, a dot a missing one."""
        values = np.array([[math.nan if value == "." else ord(value) for value in row] for row in annotators]).T
        assert statistics.alpha(values, "nominal") == pytest.approx(nominal, abs=5e-4)
        if ordinal:
            assert statistics.alpha(values, "ordinal") == pytest.approx(ordinal, abs=5e-4)

    def test_krippendorffs_alpha_without_a_difference_or_a_pair(self):
        assert statistics.alpha(np.array([[1, 1], [1, 1], [2, math.nan]]), "ordinal") == 1
        assert math.isnan(statistics.alpha(np.array([[1, math.nan], [math.nan, 2]]), "nominal"))


class TestDifferences:
    def test_annotators_are_averaged_and_never_pooled(self):
        """Three annotators who say the same are no larger sample than one."""
        scores = random_scores(6, annotators=1, sentences=40)
        alone = statistics.of_annotator(statistics.frame(rows(scores, annotators="A")), HOW)
        all_three = statistics.of_all(statistics.frame(rows(scores * 3)), HOW)
        assert all_three["adequacy_p"] == alone["adequacy_p"] and all_three["sentences"] == 40

    @pytest.mark.parametrize(
        ("choices", "expected"),
        [
            (["first", "first", "tie"], "first"),
            (["first", "second", "tie"], "tie"),
            (["first", "second"], "tie"),
            (["second"], "second"),
            (["first", "first", "second", "tie"], "tie"),  # half is no majority
        ],
    )
    def test_majority(self, choices, expected):
        assert statistics.majority(choices) == expected

    def test_sign_test_is_the_binomial_one(self):
        """The paper's Zh→En: 45 against 25 gives p = 0.022."""
        assert statistics.sign_p(45, 25) == pytest.approx(0.022, abs=5e-4)
        assert statistics.sign_p(28, 19) == pytest.approx(0.24, abs=5e-3)
        assert statistics.sign_p(0, 0) == 1

    @pytest.mark.parametrize("adequacy", [[0.0, 0.0, 0.0], [0.0, 1.0]], ids=["constant", "two sentences"])
    def test_without_variation_or_a_third_sentence_there_is_no_correlation(self, adequacy):
        metric = range(len(adequacy))
        means = pd.DataFrame({"difference": metric, "adequacy": adequacy, "fluency": metric})
        found = statistics.correlations(means)
        assert math.isnan(found["adequacy_rho"]) and math.isnan(found["adequacy_rho_p"])

    def test_needed_sentences_find_the_effect(self):
        """By simulation: with that many sentences, a Wilcoxon test of normal differences has about 80 % power."""
        count = int(statistics.needed(np.array([0.9, -0.5, 1.4, 0.1, 0.6, -0.2, 0.7])))
        effect = np.mean([0.9, -0.5, 1.4, 0.1, 0.6, -0.2, 0.7]) / np.std([0.9, -0.5, 1.4, 0.1, 0.6, -0.2, 0.7], ddof=1)
        draws = np.random.default_rng(7).normal(effect, 1, size=(300, count))
        power = np.mean([stats.wilcoxon(one).pvalue < 0.05 for one in draws])
        assert 0.74 < power < 0.87
        assert math.isinf(statistics.needed(np.array([1.0, -1.0]))) and math.isnan(statistics.needed(np.zeros(5)))
        assert math.isnan(statistics.needed(np.full(10, 1 / 3)))  # whose mean is not 1 / 3, by rounding
