"""What is retained, groups by r, and likely causes of losses: worked out by hand, and the paper's counts on WMT22."""

from __future__ import annotations

import math
import os
from pathlib import Path

import fake_coverage
import pytest
from fake_sets import put, rows
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.data import build
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import Params
from entropy_valley.stats.significance import Statistics, paired_test
from entropy_valley.tables.coverage import (
    EXTRACTORS,
    bucket,
    bucket_names,
    capitalised_words,
    coverage,
    extractors,
    papers_count,
    retention,
)
from entropy_valley.tables.failure_buckets import ALL, OVERSHOOT, SHORT, UNDER, WITHIN, cause, failure_buckets

EDGES = [0.6, 0.8]
DATA = os.environ.get("ENTROPY_VALLEY_DATA")


@pytest.fixture
def params(tmp_path):
    return fake_coverage.write(tmp_path)


def parsed(params, **over):
    return Params(params | over)


def row(numbers, item, method):
    (found,) = numbers[(numbers["item"] == item) & (numbers["method"] == method)].to_dict("records")
    return found


class TestItems:
    def test_what_is_found(self):
        text = "Since May 3, Anna's 1,200 #PRS_ORG# clients (the EU and iPhone users) paid 12.5%; I did not."
        found = {kind: list(extract(text)) for kind, extract in EXTRACTORS.items()}
        assert found["placeholder"] == ["#PRS_ORG#"]
        assert found["number"] == ["3", "1,200", "12.5"]
        assert found["entity"] == ["May", "Anna", "EU"]

    @pytest.mark.parametrize("text", ["", "Go", "#PRS_ORG# calls", "A B"])
    def test_nothing_is_capitalised_beside_the_first_word_placeholders_and_single_letters(self, text):
        assert capitalised_words(text) == []

    def test_capitals_mark_no_names_in_german_and_chinese(self):
        assert [len(extractors(code)) for code in ("en", "fr", "de", "zh")] == [3, 3, 2, 2]

    def test_an_item_of_the_source_that_comes_twice_counts_twice(self):
        assert retention(["5", "5", "7"], "5") == pytest.approx(2 / 3)
        with pytest.raises(ValueError, match="no items"):
            retention([], "5")

    @given(st.lists(st.text(alphabet="ab", min_size=1, max_size=2), min_size=1), st.text(alphabet="ab"), st.randoms())
    def test_more_output_never_retains_less_and_order_is_nothing(self, items, output, random):
        share = retention(items, output)
        assert 0 <= share <= retention(items, output + "ab") <= 1
        assert retention(random.sample(items, len(items)), output) == share

    @pytest.mark.skipif(not DATA, reason="ENTROPY_VALLEY_DATA names no folder of tatoeba/ and wmt22/")
    @pytest.mark.parametrize("direction", ["en-zh", "zh-en"])
    def test_the_papers_counts_on_wmt22(self, direction):
        source = {"name": "wmt22", "folder": str(Path(DATA, "wmt22"))}
        rows = build.testset({"direction": direction, "seed": 1, "source": source, "limit": None})
        kinds = extractors(direction.split("-")[0])
        counts = {kind: sum(bool(extract(row["source"])) for row in rows) for kind, extract in kinds.items()}
        if direction == "en-zh":
            assert (counts.pop("entity"), papers_count(direction, "entity")) == (880, 879)
        assert counts == {kind: papers_count(direction, kind) for kind in counts}


class TestBuckets:
    def test_names(self):
        assert bucket_names(EDGES) == ["r<0.6", "0.6<=r<0.8", "r>=0.8"]
        assert bucket_names([1]) == ["r<1", "r>=1"]
        assert sum(papers_count("en-zh", name) for name in bucket_names(EDGES)) == 2037
        assert papers_count("en-de", "r<0.6") is None

    @given(st.integers(0, 60), st.integers(1, 60))
    def test_an_edge_belongs_to_the_bucket_above_it(self, target, source):
        expected = (5 * target >= 3 * source) + (5 * target >= 4 * source)  # in whole numbers
        assert bucket(target / source, EDGES) == expected


class TestCoverage:
    def test_a_sentence_is_averaged_over_runs_first(self, params):
        numbers = coverage(parsed(params))
        for kind in ("placeholder", "number"):  # t0: 1 and 0, t3: 1/2 and 1; t1: 1 and 1/2, t3: 0 and 1
            found = row(numbers, kind, "ev")
            assert (found["mean"], found["sentences"], found["runs"]) == (pytest.approx(0.625), 2, 2)
            assert row(numbers, kind, "ratio")["mean"] == 0
        assert row(numbers, "entity", "ev")["mean"] == 0.5

    def test_ev_is_tested_against_each_fixed_ratio(self, params):
        numbers = coverage(parsed(params))
        test = paired_test([0.5, 0.75], [0, 0], Statistics(200, 1))
        found = row(numbers, "placeholder", "ratio_eos")
        assert [found[name] for name in ("delta", "ci_low", "ci_high")] == [test.delta, test.ci_low, test.ci_high]
        assert math.isnan(row(numbers, "placeholder", "ev")["delta"])

    def test_scores_by_r(self, params):
        numbers = coverage(parsed(params))
        names = bucket_names(EDGES)
        assert [row(numbers, name, "ratio")["sentences"] for name in names] == [1, 2, 2]
        assert [row(numbers, name, "ratio")["mean"] for name in names] == pytest.approx([0.6, 0.55, 0.65])
        assert row(numbers, "r>=0.8", "ratio")["delta"] == pytest.approx(-0.15)

    def test_the_eos_moves_sentences_to_the_buckets_above(self, params):
        counted = coverage(parsed(params, eos=True))  # r: 0.5, 0.8, 4/3, 0.8, 2.2
        assert [row(counted, name, "ev")["sentences"] for name in bucket_names(EDGES)] == [1, 0, 4]
        assert math.isnan(row(counted, "0.6<=r<0.8", "ev")["mean"])

    def test_a_direction_without_edges_has_no_buckets(self, params):
        assert set(coverage(parsed(params, buckets={}))["block"]) == {"retention"}

    @pytest.mark.parametrize("name", [TRANSLATIONS, SCORES])
    def test_outputs_of_other_sentences_are_an_error(self, params, name):
        cell = params["cells"][2]
        put(cell, name, rows(cell, name)[1:])
        with pytest.raises(InputError, match=rf"{name}: test ev .*not the sentences of .*1 ids .*, such as 't0'"):
            coverage(parsed(params))


class TestFailureBuckets:
    def test_the_first_rule_that_fits(self):
        assert cause(3, 1, [4, 5]) == SHORT
        assert [cause(4, canvas, [4, 6]) for canvas in (3, 4, 5, 6, 7)] == [OVERSHOOT, WITHIN, WITHIN, WITHIN, UNDER]

    def test_losses_by_cause_in_each_run(self, params):
        numbers = failure_buckets(parsed(params))
        run = numbers[(numbers["rival"] == "ratio") & (numbers["seed"] == 1)].set_index("cause")
        losses = {SHORT: 1, OVERSHOOT: 1, UNDER: 0, WITHIN: 1, ALL: 3}  # t3 is a win, t4 a tie
        assert run["losses"].to_dict() == losses
        assert run["share"].to_dict() == {name: pytest.approx(count / 3) for name, count in losses.items()}
        assert run.loc[[SHORT, OVERSHOOT, WITHIN, ALL], "delta"].tolist() == pytest.approx([-0.3, -0.1, -0.2, -0.2])
        assert math.isnan(run.loc[UNDER, "delta"])
        eos = numbers[(numbers["rival"] == "ratio_eos") & (numbers["seed"] == 2)].set_index("cause")
        assert eos["losses"].to_dict() == {SHORT: 0, OVERSHOOT: 0, UNDER: 1, WITHIN: 0, ALL: 1}

    def test_means_over_runs(self, params):
        cell = next(c for c in params["cells"] if (c["method"], c["seed"]) == ("ratio", 2))
        scores = [{"id": f"t{number}", "comet22": 0.4 + 0.2 * (number == 0)} for number in range(5)]
        put(cell, SCORES, scores)  # one loss, of 0.1, in the second run
        numbers = failure_buckets(parsed(params))
        means = numbers[(numbers["rival"] == "ratio") & (numbers["statistic"] == "mean")].set_index("cause")
        assert set(means["runs"]) == {2}
        assert means["losses"].to_dict() == {SHORT: 0.5, OVERSHOOT: 1, UNDER: 0, WITHIN: 0.5, ALL: 2}
        assert means.loc[OVERSHOOT, "share"] == pytest.approx((1 / 3 + 1) / 2)
        assert means.loc[ALL, "delta"] == pytest.approx((-0.2 - 0.1) / 2)

    def test_without_a_loss_there_is_no_share(self, tmp_path):
        better = {"ratio": [0.4] * 5, "ev": [0.5] * 5}
        numbers = failure_buckets(parsed(fake_coverage.write(tmp_path, better)))
        assert not numbers["losses"].any() and numbers["share"].isna().all()

    def test_where_lower_is_better_a_loss_is_above(self, params):
        params["metrics"][0]["higher_is_better"] = False
        numbers = failure_buckets(parsed(params))
        run = numbers[(numbers["rival"] == "ratio") & (numbers["seed"] == 1)].set_index("cause")
        assert run["losses"].to_dict() == {SHORT: 0, OVERSHOOT: 0, UNDER: 1, WITHIN: 0, ALL: 1}  # t3
