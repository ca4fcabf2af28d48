"""Pairs as the authors' scripts draw them: a plain writing of each script agrees, in both directions."""

from __future__ import annotations

import random

import pytest

from entropy_valley.data import build, sampling
from entropy_valley.data.sources.huggingface import HuggingFace

FILTERS = {"en": {"words": [2, 5]}, "zh": {"characters": [2, 4]}}
TRAIN, DEV, SEED = 30, 5, 42


def texts():
    """Rows with blanks that the filters see: "字 " has two characters, and a pair of blanks is no empty text."""
    for number in range(300):
        english = " ".join(["word"] * (number % 7) + [str(number)])
        chinese = ["字 ", " 字", "  ", "", "字字"][number % 5] if number % 3 else "字" * (number % 6) + str(number % 50)
        yield f" {english} ", chinese


ROWS = list(texts())


@pytest.fixture
def spec(monkeypatch):
    def rows(source):
        return ({"translation": {"en": english, "zh": chinese}} for english, chinese in ROWS)

    monkeypatch.setattr(HuggingFace, "_rows", rows)
    source = {"name": "huggingface", "dataset": "wmt/wmt19", "subset": "zh-en"}
    sizes = {"train": TRAIN, "dev": DEV, "seed": SEED}
    return {"direction": "en-zh", "source": source, "filters": FILTERS, **sizes, "sampling": "shuffle"}


def passing(english, chinese):
    return bool(english and chinese) and 2 <= len(english.split()) <= 5 and 2 <= len(chinese) <= 4


def by_the_script_for_chinese():
    pairs = [(english.strip(), chinese.strip()) for english, chinese in ROWS if passing(english, chinese)]
    random.seed(SEED)
    random.shuffle(pairs)
    return pairs[:TRAIN], pairs[TRAIN : TRAIN + DEV]


def by_the_script_for_german(spare):
    import datasets  # slow

    data = datasets.Dataset.from_list([{"en": english, "zh": chinese} for english, chinese in ROWS])
    pairs = []
    for row in data.shuffle(seed=SEED):
        if passing(row["en"], row["zh"]):
            pairs.append((row["en"].strip(), row["zh"].strip()))
        if len(pairs) >= TRAIN + spare:
            break
    random.seed(SEED)
    random.shuffle(pairs)
    return pairs[:TRAIN], pairs[TRAIN : TRAIN + DEV]


def drawn(corpus):
    return tuple([(row["source"], row["target"]) for row in rows] for rows in corpus[:2])


def test_shuffle(spec):
    expected = by_the_script_for_chinese()
    corpus = build.corpus(spec)
    assert drawn(corpus) == expected
    assert corpus[2]["counts"]["read"] == 300  # the second pass is not counted again
    swapped = tuple([pair[::-1] for pair in pairs] for pairs in expected)
    assert drawn(build.corpus(spec | {"direction": "zh-en"})) == swapped


@pytest.mark.parametrize("spare", [10, 60])
def test_shuffle_rows(spec, monkeypatch, spare):
    monkeypatch.setattr(sampling, "SPARE", spare)
    assert drawn(build.corpus(spec | {"sampling": "shuffle_rows"})) == by_the_script_for_german(spare)


@pytest.mark.parametrize("sampling_scheme", ["shuffle", "shuffle_rows"])
def test_of_too_few_pairs_dev_gets_a_tenth_at_least(spec, sampling_scheme):
    train, dev, _, _ = build.corpus(spec | {"sampling": sampling_scheme, "train": 300, "dev": 290})
    available = len(train) + len(dev)
    assert available < 305 and len(dev) == max(available // 10, available - 300)
