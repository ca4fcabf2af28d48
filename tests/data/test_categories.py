"""Categories of English sentences by the authors' rules, and which sentences a challenge subset takes."""

import os
from collections import Counter
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("of march 3 we", {DATES}),
        ("of march we", set()),
        ("come SUNDAY", {DATES}),
        ("by 3/4/21", {DATES, NUMBERS}),
        ("by 2020-1-2", {DATES, NUMBERS}),
        ("the First is the second", {LIST}),
        ("so, and so", {LIST}),
        ("a, b or c", set()),
        ("1) this", {LIST}),
        ("See Anna and Paul", {NAMES}),
        ("See Anna and the EU", set()),  # all capitals are no name
        ("Anna Maria Paul", {NAMES}),
        ("Anna Maria", set()),
        ("7 of 9", set()),
        ("12 or 5% or $4 or 3.5", {NUMBERS}),
        ("$4", {NUMBERS}),
        ("5% off", {NUMBERS}),
        ("3.5 of it", {NUMBERS}),
        ("2 Million", {NUMBERS}),
    ],
)
def test_the_authors_categories(text, expected):
    assert set(published_categories(text)) == expected


@pytest.mark.skipif(not DATA, reason="ENTROPY_VALLEY_DATA names no folder of tatoeba/ and wmt22/")
@pytest.mark.parametrize("direction", ["en-zh", "zh-en"])
def test_the_papers_counts_on_wmt22(direction):
    source = {"name": "wmt22", "folder": str(Path(DATA, "wmt22"))}
    spec = {"direction": direction, "seed": 1, "source": source, "limit": None}
    english = "source" if direction == "en-zh" else "target"
    whole = build.testset(spec)
    assert sum(bool(published_categories(row[english])) for row in whole) == 670
    subset = build.testset({**spec, "challenge": 400})
    counts = Counter(name for row in subset for name in published_categories(row[english]))
    assert (len(subset), counts) == (400, {DATES: 32, LIST: 75, NAMES: 280, NUMBERS: 123})
