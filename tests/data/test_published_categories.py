"""The authors' categories: what they find, a plain oracle, and the paper's counts on the real WMT22 file."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.data import build
from entropy_valley.data.categories import CATEGORIES, published_categories

DATA = os.environ.get("ENTROPY_VALLEY_DATA")
DATES, LIST, NAMES, NUMBERS = CATEGORIES
WORDS = [
    "march",
    "May 3",
    "on",
    "SUNDAY",
    "Anna",
    "EU",
    "#PRS_ORG#,",
    "I",
    "7",
    "12",
    "5%",
    "$4",
    "3.5",
    "2 million",
    ", and",
    ",or ",
]
WORDS += ["second", "First", "1)", "2020-1-2", "3/4/21", "x-1", "\u00dcber", "iPad"]


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
    found = {
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
    return tuple(name for name, has in found.items() if has)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains on monday.", {DATES}),
        ("It was on May 3.", {DATES}),
        ("It was 3/4/2021 then.", {DATES, NUMBERS}),
        ("It was 1-2-21 then.", {DATES, NUMBERS}),
        ("In 1991 it fell.", {NUMBERS}),
        ("Take 7 of them.", set()),
        ("It fell by 7%.", {NUMBERS}),
        ("About 3 million came.", {NUMBERS}),
        ("Tea, milk and bread.", set()),
        ("Tea, milk, and bread.", {LIST}),
        ("The first and the second.", {LIST}),
        ("1) go there", {LIST}),
        ("Then Li Wei called.", {NAMES}),
        ("Then Li called.", set()),
        ("Then the EU and the UN met.", set()),
        ("Tap #PRS_ORG# now.", set()),
    ],
)
def test_what_they_find(text, expected):
    assert set(published_categories(text)) == expected


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
    subset = build.testset({**spec, "challenge": 400, "challenge_reading": "first"})
    counts = Counter(name for row in subset for name in published_categories(row[english]))
    assert (len(subset), counts) == (400, {DATES: 32, LIST: 75, NAMES: 280, NUMBERS: 123})
    ours = build.testset({**spec, "direction": "en-zh", "challenge": 400})
    assert {row["id"] for row in ours} != {row["id"] for row in subset}
