import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.data import build, sampling
from entropy_valley.data.sampling import Tally, accepts, filtered
from entropy_valley.data.sources.huggingface import HuggingFace
from entropy_valley.errors import InputError

TEXT = st.text(max_size=4)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=60)
SIZE = st.integers(0, 70)
SEED = st.integers(0, 5)


@given(PAIRS, SIZE, SEED, st.randoms(use_true_random=False))
def test_bottom_k_is_the_sorted_prefix_in_any_order(pairs, k, seed, random):
    expected = sorted(set(pairs), key=lambda pair: sampling.rank(pair, seed))[:k]
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert sampling.bottom_k(pairs, k, seed) == sampling.bottom_k(shuffled, k, seed) == expected


@given(PAIRS, st.integers(0, 5), st.integers(0, 5), SEED)
def test_split_keeps_dev_apart_and_train_nested(pairs, train, dev, seed):
    available = len(set(pairs))
    if available < min(train + dev, sampling.FEWEST):
        with pytest.raises(InputError, match="distinct pairs are asked for"):
            sampling.split(pairs, train, dev, seed)
        return
    trained, developed = sampling.split(pairs, train, dev, seed)
    assert not set(trained) & set(developed)
    if available >= train + dev:
        assert (len(trained), len(developed)) == (train, dev)
        assert sampling.split(pairs, 0, dev, seed)[1] == developed


@given(st.integers(10, 500), st.integers(1, 400), st.integers(1, 400))
def test_of_fewer_pairs_none_is_left_and_both_get_some(available, train, dev):
    for_training, for_dev = sampling.shares(available, train, dev)
    assert 0 < for_training <= train and 0 < for_dev <= dev
    assert for_training + for_dev == min(available, train + dev)
    assert for_dev >= min(dev, available // 10)


@given(PAIRS, SIZE, SEED)
def test_subset_keeps_numbers_order_and_repetitions(pairs, limit, seed):
    drawn = sampling.subset(pairs, limit, seed, "keyed_hash")
    assert len(drawn) == min(limit, len(pairs))
    assert drawn == sorted(drawn)
    assert all(pairs[number - 1] == pair for number, pair in drawn)
    assert sampling.subset(pairs, limit, seed, "first") == list(enumerate(pairs, 1))[:limit]
    for reading in ("first", "keyed_hash"):
        assert sampling.subset(pairs, None, seed, reading) == list(enumerate(pairs, 1))


@pytest.mark.parametrize(
    ("text", "limits", "passes"),
    [
        ("a b c", {"words": [3, 3]}, True),
        ("a b", {"words": [3, 5]}, False),
        ("你好", {"characters": [2, 600]}, True),
        ("你", {"characters": [2, 600]}, False),
        ("  ", {}, False),
        ("\u200b", {}, False),
        ("a\u200bb", {"hidden": [0, 0]}, False),
        ("a\u200bb", {"hidden": [0, 1]}, True),
        ("anything", {}, True),
    ],
)
def test_filters(text, limits, passes):
    assert accepts(text, limits) is passes


WORDS = st.lists(st.sampled_from(["a", "b", " "]), max_size=8).map(" ".join)
LIMITS = {"en": {"words": [2, 4]}, "zh": {"characters": [2, 6]}}


@given(st.lists(st.tuples(WORDS, WORDS), max_size=30))
def test_every_dropped_pair_has_one_reason_the_same_in_both_directions(pairs):
    there, back = Tally(), Tally()
    kept = list(filtered(pairs, "en-zh", LIMITS, there))
    assert list(filtered([pair[::-1] for pair in pairs], "zh-en", LIMITS, back)) == [pair[::-1] for pair in kept]
    assert there == back and there.read == len(pairs)
    assert sum(sum(whys.values()) for whys in there.reasons.values()) == len(pairs) - len(kept)


def test_filters_that_nothing_passes_end_the_search_in_an_endless_source(monkeypatch):
    monkeypatch.setattr(sampling, "PATIENCE", 3)
    pairs = itertools.cycle([("a b", "好好"), *[("a", "好好")] * 2])
    assert len(list(itertools.islice(filtered(pairs, "en-zh", LIMITS, Tally(), endless=True), 9))) == 9
    nothing = filtered(itertools.repeat(("a", "好好")), "en-zh", LIMITS, Tally(), endless=True)
    with pytest.raises(InputError, match=r"corpus.filters: 3 pairs in a row .* \(en short: 3\)"):
        next(nothing)


# --- Pairs as the authors' scripts draw them: a plain writing of each script agrees, in both directions.

FILTERS = {"en": {"words": [2, 5]}, "zh": {"characters": [2, 4]}}
TRAIN, DEV, NUMBER = 30, 5, 42


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
    sizes = {"train": TRAIN, "dev": DEV, "seed": NUMBER}
    return {"direction": "en-zh", "source": source, "filters": FILTERS, **sizes, "sampling": "shuffle"}


def passing(english, chinese):
    return bool(english and chinese) and 2 <= len(english.split()) <= 5 and 2 <= len(chinese) <= 4


def by_the_script_for_chinese():
    pairs = [(english.strip(), chinese.strip()) for english, chinese in ROWS if passing(english, chinese)]
    random.seed(NUMBER)
    random.shuffle(pairs)
    return pairs[:TRAIN], pairs[TRAIN : TRAIN + DEV]


def by_the_script_for_german(spare):
    import datasets  # slow

    data = datasets.Dataset.from_list([{"en": english, "zh": chinese} for english, chinese in ROWS])
    pairs = []
    for row in data.shuffle(seed=NUMBER):
        if passing(row["en"], row["zh"]):
            pairs.append((row["en"].strip(), row["zh"].strip()))
        if len(pairs) >= TRAIN + spare:
            break
    random.seed(NUMBER)
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
