"""Categories of sentences by our rules and by the authors', and which sentences a challenge subset takes."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from entropy_valley.data import build
from entropy_valley.data import categories as challenge
from entropy_valley.data.categories import CATEGORIES, categories, published_categories
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.grammar import SOURCES

DATA = os.environ.get("ENTROPY_VALLEY_DATA")
DATES, LIST, NAMES, NUMBERS = CATEGORIES


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "We met on Monday.", {DATES}),
        ("en", "In 1991 it collapsed.", {DATES, NUMBERS}),
        ("en", "Nothing may march here.", set()),
        ("en", "Our range includes rings, earrings and pendants.", {LIST}),
        ("en", "Now I'm late and I know it.", set()),
        ("en", "Then Li Wei called.", {NAMES}),
        ("en", 'Late. Nothing else. "Nothing" else.', set()),
        ("en", "Please call #PRS_ORG# now.", {NAMES}),
        ("de", "Am 3. Oktober war die Tür zu.", {DATES, NUMBERS}),
        ("de", "Gestern sprach Angela Merkel.", {NAMES}),
        ("de", "Dort ist die EU stark.", {NAMES}),
        ("de", "Haben Sie Ihren Hund?", set()),
        ("fr", "Le 3 mars, il pleut.", {DATES, NUMBERS}),
        ("fr", "Hier, Marie dort.", {NAMES}),
        ("zh", "他一周三次来。", set()),
        ("zh", "这是2018年之前的事了。", {DATES, NUMBERS}),
        ("zh", "戒指、耳环和吊坠。", {LIST}),
        ("zh", "埃马纽埃尔·马克龙说。", {NAMES}),
        ("zh", "用 iPad 和 Windows 看《黑色沙漠》。", {NAMES}),
    ],
)
def test_categories(language, text, expected):
    assert set(categories(text, language)) == expected


@pytest.fixture
def by_number(monkeypatch):
    """The rank of a pair is the number in its target."""
    monkeypatch.setattr(challenge, "rank", lambda pair, seed: int(pair[1]))


def test_a_subset_by_hand(by_number):
    """Eight of eleven: two of each category. Dates (1) and lists (2) are scarcest; then names (3) and numbers (5).

    Dates: 9, all there are. Lists: 8 and 10. Names: 10 has one, and 2 comes first. Numbers: 9 has one, and 1 comes
    first. That makes five; of the rest by rank 3, 4, 5 fill up, and 6, 7 are left. 0 and 11 have no category.
    """
    sources = {
        0: "nothing",
        1: "take 1",
        2: "see Anna",
        3: "take 3",
        4: "see Paul",
        5: "take 5",
        6: "take 6",
        7: "see Maria",
        8: "buy tea, milk and bread",
        9: "in 1991",
        10: "see tea, milk and Thomas",
        11: "nothing",
    }
    numbered = [(number, (text, str(number))) for number, text in reversed(sources.items())]
    drawn = challenge.challenge(numbered, 8, 1, "en_gb-zh", "stratified")
    assert [number for number, _ in drawn] == [1, 2, 3, 4, 5, 8, 9, 10]


@pytest.mark.parametrize("reading", ["first", "stratified"])
def test_too_few_sentences_with_a_category(by_number, reading):
    numbered = [(1, ("take 12", "1")), (2, ("nothing", "2"))]
    with pytest.raises(InputError, match="2 distinct pairs are asked for, the source has 1"):
        challenge.challenge(numbered, 2, 1, "en-zh", reading)


SPEC = {"direction": "en-zh", "seed": 1, "source": {"name": "embedded", "seed": 1}, "limit": 100}


def test_the_first_sentences_with_a_category_are_the_authors_subset():
    """Theirs needs no hash: their rules want two names in a sentence, and a comma before "and" in a list."""
    sources = ["take 12", "see Anna", "buy tea, milk and Anna", "we saw Li Wei", "on Monday", "take 13"]
    numbered = [(number, (text, str(-number))) for number, text in enumerate(sources, 1)]
    first, ours = (challenge.challenge(numbered, 3, 1, "en-zh", reading) for reading in ("first", "stratified"))
    assert [number for number, _ in first] == [1, 4, 5]
    assert first != ours
    swapped = [(number, pair[::-1]) for number, pair in numbered]
    back = challenge.challenge(swapped, 3, 1, "zh_tw-en_gb", "first")  # the rules look at the English side
    assert [number for number, _ in back] == [1, 4, 5]


def test_the_authors_rules_are_for_english():
    with pytest.raises(InputError, match=r"for English, and de-fr has no such side.*corpus.challenge: stratified"):
        challenge.challenge([(1, ("a", "b"))], 1, 1, "de-fr", "first")
    with pytest.raises(InputError, match="categories of ru sentences"):
        categories("да", "ru")
    with pytest.raises(InputError, match="no categories for sources in ru"):
        challenge.challenge([(1, ("a", "b"))], 1, 1, "ru-en", "stratified")


def test_it_is_part_of_its_test_set_and_hashed_by_the_corpus_seed():
    whole, part = build.testset(SPEC, SOURCES), build.testset({**SPEC, "challenge": 20}, SOURCES)
    assert len(part) == 20
    assert [row for row in whole if row in part] == part
    assert all(categories(row["source"], "en") for row in part)
    assert part == build.testset({**SPEC, "challenge": 20}, SOURCES)
    assert part != build.testset({**SPEC, "challenge": 20, "seed": 2}, SOURCES)


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
    subset = build.testset({**spec, "challenge": 400, "challenge_reading": "first"})
    counts = Counter(name for row in subset for name in published_categories(row[english]))
    assert (len(subset), counts) == (400, {DATES: 32, LIST: 75, NAMES: 280, NUMBERS: 123})
    ours = build.testset({**spec, "direction": "en-zh", "challenge": 400})
    assert {row["id"] for row in ours} != {row["id"] for row in subset}
