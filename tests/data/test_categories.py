"""Categories of English sentences by the authors' rules, and which sentences a challenge subset takes."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.data import build
from entropy_valley.data import categories as challenge
from entropy_valley.data.categories import CATEGORIES, published_categories
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.grammar import SOURCES

DATA = os.environ.get("ENTROPY_VALLEY_DATA")
DATES, LIST, NAMES, NUMBERS = CATEGORIES


def test_too_few_sentences_with_a_category():
    numbered = [(1, ("take 12", "1")), (2, ("nothing", "2"))]
    with pytest.raises(InputError, match="2 distinct pairs are asked for, the source has 1"):
        challenge.challenge(numbered, 2, "en-zh")


SPEC = {"direction": "en-zh", "seed": 1, "source": {"name": "embedded", "seed": 1}, "limit": 100}


def test_the_first_sentences_with_a_category_are_the_authors_subset():
    """Theirs needs no hash: their rules want two names in a sentence, and a comma before "and" in a list."""
    sources = ["take 12", "see Anna", "buy tea, milk and Anna", "we saw Li Wei", "on Monday", "take 13"]
    numbered = [(number, (text, str(-number))) for number, text in enumerate(sources, 1)]
    assert [number for number, _ in challenge.challenge(numbered, 3, "en-zh")] == [1, 4, 5]
    swapped = [(number, pair[::-1]) for number, pair in numbered]
    back = challenge.challenge(swapped, 3, "zh_tw-en_gb")  # the rules look at the English side
    assert [number for number, _ in back] == [1, 4, 5]


def test_the_authors_rules_are_for_english():
    with pytest.raises(InputError, match=r"for English, and de-fr has no such side"):
        challenge.challenge([(1, ("a", "b"))], 1, "de-fr")


def test_it_is_part_of_its_test_set():
    whole, part = build.testset(SPEC, SOURCES), build.testset({**SPEC, "challenge": 20}, SOURCES)
    assert len(part) == 20
    assert [row for row in whole if row in part] == part
    assert all(published_categories(row["source"]) for row in part)


# --- The authors' rules.

WORDS = ["march", "May 3", "on", "SUNDAY", "Anna", "EU", "#PRS_ORG#,", "I", "7", "12", "5%", "$4", "3.5", "2 million"]
WORDS += [", and", ",or ", "second", "First", "1)", "2020-1-2", "3/4/21", "x-1", "\u00dcber", "iPad"]


def plain(text: str) -> tuple[str, ...]:
    """Rule by rule, as docs/protocol.md lists them, with nothing left out and nothing joined."""

    def any_of(*patterns):
        return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)

    month = "January|February|March|April|May|June|July|August|September|October|November|December"
    day = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
    ordinal = "first|second|third|fourth|fifth"
    capitals = 0
    for place, word in enumerate(text.split()):
        if place > 0 and word[0].isupper() and not word.isupper() and len(word) > 1:
            capitals += 1
    rules = {
        DATES: any_of(
            rf"\b({month})\s+\d+",
            rf"\b({day})\b",
            r"\b\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b",
            r"\b\d{4}[-/]\d{1,2}[-/]\d{1,2}\b",
        ),
        LIST: any_of(
            rf"\b({ordinal})\b.*\b({ordinal})\b", r",\s*(and|or)\s", r"\w+,\s+\w+,\s+(and|or)\s+\w+", r"\b\d+\)\s"
        ),
        NAMES: len(text.split()) >= 3 and capitals >= 2,
        NUMBERS: any_of(
            r"\b\d{4}\b",
            r"\b\d+[,\.]\d+\b",
            r"\d+%",
            r"\$\d+",
            r"\d+\s*(million|billion|thousand|hundred)",
            r"\b\d{2,}\b",
        ),
    }
    return tuple(name for name, has in rules.items() if has)


@given(st.lists(st.sampled_from(WORDS) | st.text(alphabet="aB1,.%$/-) ", max_size=6), max_size=8).map(" ".join))
def test_a_plain_oracle_agrees(text):
    assert published_categories(text) == plain(text)


@pytest.mark.skipif(not DATA, reason="ENTROPY_VALLEY_DATA names no folder of tatoeba/ and wmt22/")
@pytest.mark.parametrize("direction", ["en-zh", "zh-en"])
def test_the_papers_counts_on_wmt22(direction):
    source = {"name": "wmt22", "folder": str(Path(DATA, "wmt22"))}
    spec = {"direction": direction, "seed": 1, "source": source, "limit": None}
    english = "source" if direction == "en-zh" else "target"
    whole = build.testset(spec)
    assert all(published_categories(row[english]) == plain(row[english]) for row in whole)
    assert sum(bool(published_categories(row[english])) for row in whole) == 670
    subset = build.testset({**spec, "challenge": 400})
    counts = Counter(name for row in subset for name in published_categories(row[english]))
    assert (len(subset), counts) == (400, {DATES: 32, LIST: 75, NAMES: 280, NUMBERS: 123})
