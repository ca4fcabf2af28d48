from hashlib import sha256
from itertools import islice

import pytest

from entropy_valley.data import build
from entropy_valley.experiment.demo import grammar
from entropy_valley.experiment.demo.grammar import SOURCES, Synthetic, anchors
from entropy_valley.experiment.demo.languages import Action, NounPhrase, Question, Statement, express

NOUN = {noun.en: noun for noun in grammar.NOUNS}
VERB = {f"{verb.en[0]} {verb.en[-1]}".strip(): verb for verb in grammar.VERBS + grammar.DITRANSITIVE}
ADJECTIVE = {adjective.en: adjective for adjective in grammar.ADJECTIVES}
WE = grammar.SUBJECTS[3]
ANNA = grammar.PEOPLE[0]


def the(noun, determiner="the", adjective=None):
    return NounPhrase(NOUN[noun], determiner, ADJECTIVE.get(adjective))


@pytest.fixture(scope="module")
def sentences():
    return list(islice(grammar.stream(7), 5_000))


def test_the_sentences_stay_the_same(sentences):
    digest = sha256("\n".join("\t".join(sentence) for sentence in sentences).encode()).hexdigest()
    assert digest[:16] == "c11d2c26b8f9183b"
    assert list(islice(grammar.stream(8), 50)) != sentences[:50]


def pairs(direction, split, size):
    return list(islice(Synthetic(name="embedded", seed=3).pairs(direction, split, seed=1), size))


def test_splits_are_apart_and_the_same_in_every_direction():
    sides = {split: list(zip(*pairs("en-zh", split, 80), strict=True)) for split in ("train", "dev", "test")}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not any(set(a) & set(b) for a, b in zip(sides[one], sides[other], strict=True))
    assert [source for source, _ in pairs("en-de", "test", 80)] == list(sides["test"][0])
    assert [pair[::-1] for pair in pairs("zh-en", "test", 20)] == pairs("en-zh", "test", 20)


@pytest.mark.parametrize(
    ("language", "statement", "question"),
    [
        ("en", ["Anna", "calls", "Maria", "every day"], ["When", "call", "29", "guests"]),
        ("fr", ["Anna", "appelle", "Maria", "tous les jours"], ["Quand", "appeler", "29", "invités"]),
    ],
)
def test_the_alignment_has_the_words_of_a_meaning(language, statement, question):
    call, maria, daily = VERB["call"], grammar.PEOPLE[2], grammar.HABITS[0]
    meanings = (
        Statement(Action(ANNA, call, maria, time=daily)),
        Question(Action(WE, call, the("guest", "29"), "must"), grammar.QUESTIONS[1]),
    )
    for meaning, words in zip(meanings, (statement, question), strict=True):
        text = getattr(express(meaning), language)
        aligned = [text[start:end] for start, end in anchors(meaning, language, text)]
        assert sorted(aligned) == sorted(words)


def test_aligned_test_sets_have_the_same_sentences():
    plain, aligned = (Synthetic(name="embedded", seed=1, aligned=one) for one in (None, True))
    spec = {"direction": "en-de", "seed": 1, "limit": 30}
    rows, more = (build.testset(spec | {"source": one.settings("en-de", "test")}, SOURCES) for one in (plain, aligned))
    assert [{key: row[key] for key in ("id", "source", "target")} for row in more] == rows
    assert all(0 <= start < end <= len(row["target"]) for row in more for start, end in row["anchors"])
    shares = [sum(end - start for start, end in row["anchors"]) / len(row["target"]) for row in more]
    assert 0.4 < sum(shares) / len(shares) < 0.8
