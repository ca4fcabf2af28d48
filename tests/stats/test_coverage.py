"""What is retained, groups by r, and likely causes of losses; the paper's counts on WMT22."""

import os
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.data import build
from entropy_valley.experiment.stats.paper_numbers import find
from entropy_valley.experiment.stats.significance import Analysis
from entropy_valley.experiment.tables.coverage import (
    EXTRACTORS,
    capitalised_words,
    cause,
    coverage_numbers,
    extractors,
    losses,
    retention,
)

DATA = os.environ.get("ENTROPY_VALLEY_DATA")


def papers_count(direction, item):
    return find("tab:coverage", "sentences", direction=direction, setting=item).value


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
        assert [len(extractors(code)) for code in ("en", "en_gb", "fr", "de", "zh")] == [3, 3, 3, 2, 2]

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


def test_the_first_cause_that_fits():
    assert cause(3, 1, [4, 5]) == "very_short"
    causes = [cause(4, canvas, [4, 6]) for canvas in (3, 4, 5, 6, 7)]
    assert causes == ["overshoot", "within_grid", "within_grid", "within_grid", "under_compression"]


def four_sentences(scores, **coverage):
    """A run of four sentences: sources of 4 tokens, references of 1 to 4; EV compared canvases of 3 and 4 slots."""
    rows = []
    for method, values in scores.items():
        for at, value in enumerate(values):
            cell = {"direction": "de-fr", "testset": "test", "seed": 1, "method": method, "id": f"s{at}"}
            tokens = {"source_tokens": 4, "target_tokens": at + 1, "canvas": {"candidates": [3, 4]}}
            rows.append(cell | tokens | {"source": "", "hypothesis": "", "comet": value})
    experiment, metric = SimpleNamespace(coverage=SimpleNamespace(**coverage)), SimpleNamespace(name="comet")
    sentences, how = pd.DataFrame(rows), Analysis(**HOW)
    return SimpleNamespace(experiment=experiment, metric=metric, statistics=how, sentences=sentences)


HOW = {"resamples": 50, "seed": 1}


@pytest.mark.parametrize(("eos", "above"), [(False, 3), (True, 4)])  # an edge belongs to the bucket above it
def test_r_counts_the_eos_if_the_config_says_so(eos, above):
    data = four_sentences({"ev": [0.5] * 4, "ratio": [0.25] * 4}, buckets={"de-fr": [0.5]}, eos=eos)
    numbers = coverage_numbers(data)
    of_bucket = numbers[(numbers["item"] == "r>=0.5") & (numbers["method"] == "ratio")]
    assert of_bucket[["sentences", "delta"]].to_numpy().tolist() == [[above, 0.25]]


def test_a_tie_is_no_loss_and_causes_add_up_to_all():
    numbers = losses(four_sentences({"ev": [0.5, 0.5, 0.5, 0.5], "ratio": [0.5, 0.6, 0.4, 0.7]}))
    of_run = numbers[numbers["statistic"] == "run"].set_index("cause")["losses"]
    assert of_run.to_dict() == {"very_short": 0, "overshoot": 0, "under_compression": 1, "within_grid": 1, "all": 2}


def test_without_a_loss_there_is_no_share():
    numbers = losses(four_sentences({"ev": [0.5] * 4, "ratio": [0.4] * 4}))
    assert not numbers["losses"].any() and numbers["share"].isna().all()
