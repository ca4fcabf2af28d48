"""Which translations are said to be doubtful."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.lengths import make_method
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation.translator import SENTENCES, Translation, Translator, TypicalEntropy


class Measured:
    """A translator for which the entropy of a sentence is its number of words; longer than nine does not fit."""

    def entropies(self, sources, names):
        return [float(len(source.split())) for source in sources if len(source.split()) < 10]

    def has_unknown(self, source):
        return "☃" in source


@given(st.lists(st.integers(1, 12), max_size=2 * SENTENCES), st.integers(1, 12))
def test_only_an_entropy_above_all_development_sentences_is_unusual(lengths, length):
    usual = TypicalEntropy.of(Measured(), ["word " * one for one in lengths])
    fitting = [one for one in lengths[:SENTENCES] if one < 10]
    assert usual.sentences == len(fitting)
    hints = usual.hints(Measured(), "any", Translation("text", canvas=4, entropies={4: float(length), 5: 99.0}))
    assert bool(hints) == bool(fitting and length > max(fitting))


def test_what_the_tokenizer_does_not_know_is_said_without_development_sentences():
    assert TypicalEntropy().hints(Measured(), "a ☃", Translation("text")) == [
        "has characters that the tokenizer does not know"
    ]


@pytest.fixture
def translator(llada):
    return Translator(
        llada, Prompt("Say: {src}\n", llada.tokenizer), make_method("ev", {"ratios": [0.5, 1.0]}), steps=4
    )


def test_unknown_tokens_are_the_tokenizers(translator):
    class Words:
        unk_token_id = 0

        def __call__(self, text, **plain):
            return {"input_ids": [("unknown", "the", "cat").index(word) for word in text.split()]}

    words = dataclasses.replace(translator, prompt=Prompt("{src}", Words()))
    assert words.has_unknown("the unknown cat") and not words.has_unknown("the cat")
    assert not translator.has_unknown("☃")  # its tokens are bytes


def test_entropies_are_those_of_the_translations(translator):
    sources = ["the cat", "word " * 5000, "", "a small dog"]
    entropies = [one.entropy for one in translator.translate(sources, skip=True)]
    assert entropies[1] is None and entropies[2] is None
    assert translator.entropies(sources) == entropies


class TestLists:
    def test_a_sentence_that_is_too_long_keeps_no_other_from_being_translated(self, translator):
        sources = ["the cat", "word " * 5000, "a small dog"]
        short, long, other = translator.translate(sources, skip=True, place="stdin", names=[7, 8, 9])
        assert [short, other] == translator.translate(sources[::2])
        assert "sentence 8" in str(long.problem) and long.text == ""
        with pytest.raises(InputError, match="sources: sentence 2: prompt"):
            translator.translate(sources)

    def test_nothing_is_made_of_nothing(self, translator):
        assert translator.translate(["", " \t"]) == [Translation(""), Translation("")]
        assert translator.translate([]) == []

    def test_a_bare_text_is_no_list(self, translator):
        with pytest.raises(InputError, match=r"letter by letter.*\[text\]"):
            translator.translate("the cat")
