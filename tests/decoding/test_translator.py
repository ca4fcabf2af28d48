"""The library's front door gives what a length_method and the reference decoder give sentence by sentence."""

import dataclasses
import sys
from types import SimpleNamespace
from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from reference_variants import mean_entropy

from entropy_valley.decoding import reference
from entropy_valley.decoding.engine import Engine
from entropy_valley.errors import InputError, SentenceError
from entropy_valley.lengths import make_method
from entropy_valley.lengths.base import candidate_length
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation.translator import SENTENCES, Translation, Translator, TypicalEntropy

SOURCES = ["Anna sees it", "the cat paints the old red car", "a small dog buys 12 houses"]
RATIOS = [0.5, 1.0, 1.5]


@pytest.fixture
def translator(llada):
    return Translator(llada, Prompt("{src} = ", llada.tokenizer), make_method("ev", {"ratios": RATIOS}), steps=4)


def test_it_gives_algorithm_1(backbone):
    prompt = Prompt("English: {src}\nGerman: ", backbone.tokenizer)
    translations = Translator(backbone, prompt, make_method("ev", {"ratios": RATIOS}), steps=4).translate(SOURCES)
    for source, translation in zip(SOURCES, translations, strict=True):
        candidates = {candidate_length(ratio, len(prompt.tokens(source))) for ratio in RATIOS}
        means = {length: mean_entropy(backbone, prompt.encode(source), length) for length in candidates}
        assert translation.scores.keys() == candidates
        assert translation.length == min(sorted(means), key=means.__getitem__)
        _, text = reference.decode(backbone, prompt.encode(source), translation.length, 4)
        assert translation.text == prompt.text(text)


def test_lengths_may_be_given_and_every_reading_is_kept(backbone):
    prompt = Prompt("English: {src}\nGerman: ", backbone.tokenizer)
    translator = Translator(backbone, prompt, make_method("ev", {"ratios": RATIOS}), steps=4)
    lengths = numpy.array([5, 9, 3])
    for source, length, one in zip(SOURCES, lengths, translator.translate(iter(SOURCES), lengths=lengths), strict=True):
        _, text = reference.decode(backbone, prompt.encode(source), length, 4)
        assert one.text == prompt.text(text) and one.canvas == one.length == length
        entropies, tokens = reference.read(backbone, prompt.encode(source), [backbone.mask_id] * length)
        assert one.readings.keys() == one.entropies.keys() == {length} and [*one.readings[length].tokens] == tokens
        assert one.readings[length].entropies == pytest.approx(entropies, abs=1e-4)
    probed = translator.translate(SOURCES)[0]
    assert probed.readings.keys() == probed.entropies.keys() == probed.scores.keys()


@pytest.mark.parametrize("lengths", [[], [4], [4, 0], [4, 2.5], 4])
def test_lengths_are_one_for_each_sentence(translator, lengths):
    with pytest.raises(InputError, match=r"lengths: .* for 2 sentences\. Give a list with a whole number of 1 or more"):
        translator.translate(SOURCES[:2], lengths=lengths)


def test_a_translation_shows_its_curve():
    translation = Translation("Hallo.", 3, {3: 0.1}, 3, {2: 0.5, 3: 0.126, 1: None})
    assert repr(translation) == "Translation('Hallo.', canvas=3, entropies={1: –, 2: 0.50, 3: 0.13})"
    grown = dataclasses.replace(translation, length=5)
    assert repr(grown).startswith("Translation('Hallo.', canvas=3, length=5, ")
    curve, chosen = translation.plot(Figure().subplots()).lines
    assert curve.get_xydata().tolist() == [[2, 0.5], [3, 0.126]] and chosen.get_xydata().tolist() == [[3, 0.126]]
    skipped = Translation("", problem=SentenceError("in.txt", "sentence 1: too long", "Shorten it."))
    assert repr(skipped) == "Translation(problem='sentence 1: too long')"
    (nothing,) = Translation("").plot(Figure().subplots()).lines
    assert len(nothing.get_ydata()) == 0


def test_a_curve_without_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[plot\]'"):
        Translation("Hallo.").plot()


def test_what_is_no_text_is_named(translator):
    with pytest.raises(InputError, match=r"sources: sentence 2 is 7, not a text\. Give a list of texts"):
        translator.translate([SOURCES[0], 7])
    with pytest.raises(InputError, match=r"letter by letter.*\[text\]"):
        translator.translate("the cat")


def test_any_series_of_texts_is_translated_and_what_no_text_has_is_skipped(translator):
    texts = translator.translate(SOURCES)
    assert translator.translate(iter(SOURCES)) == translator.translate(dict.fromkeys(SOURCES)) == texts
    broken = [SOURCES[0], "a\ud800b", *SOURCES[1:]]
    with pytest.raises(SentenceError, match=r"sources: sentence 2: character 2 is U\+D800, which no text has"):
        translator.translate(broken)
    first, skipped, *others = translator.translate(broken, skip=True)
    assert [first, *others] == texts and skipped.problem.problem.startswith("sentence 2: character 2 is U+D800")


@pytest.mark.parametrize("source", ["a\nb", "a\rb", "a\n"])
def test_a_sentence_is_one_line(translator, source):
    with pytest.raises(SentenceError, match=r"sources: sentence 1: a line break \(U\+000[AD]\)\. Give each line"):
        translator.translate([source])


def test_progress_is_shown_on_request(translator, capsys):
    quiet = translator.translate(["", *SOURCES[:3]])
    assert not capsys.readouterr().err
    assert translator.translate(["", *SOURCES[:3]], progress=True) == quiet
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("translate: 100%") and " 3/3 " in last


@pytest.mark.parametrize("steps", [3, 32])
def test_the_seconds_of_a_sentence_are_those_of_its_passes(llada, monkeypatch, steps):
    """By a clock that counts the tokens that were computed; guesses would be more."""
    engine = Engine(llada, lookahead=0)
    method = make_method("ev", {"ratios": [0.9, 1.0, 1.1]})
    translator = Translator(llada, Prompt("{src} = ", llada.tokenizer), method, steps=steps, engine=engine)
    computed = mock.Mock(perf_counter=lambda: engine.ledger["tokens"])
    monkeypatch.setattr("entropy_valley.translation.translator.time", computed)
    seconds, before = translator.seconds(SOURCES[1]), engine.ledger["tokens"]
    translator.translate([SOURCES[1]])
    assert seconds == pytest.approx(engine.ledger["tokens"] - before, rel=0.1)
    assert translator.seconds(" ") == translator.seconds("word " * 5000) == 0


def test_its_method_is_no_name_and_its_repr_is_a_line(translator):
    for method, problem in [
        ("ratio", r"ratio is a name or a class. Give make_method\(NAME, {…}\)"),
        (type(translator.method), ".*EntropyValley.* is a name or a class. Give .* an object of the class"),
        (3, "3 has no sees_"),
    ]:
        with pytest.raises(InputError, match=f"method: {problem}"):
            dataclasses.replace(translator, method=method)
    for order in (type("Outward", (), {}), type("Outward", (), {})()):
        with pytest.raises(InputError, match=r'reveal order: .* is not a name\. Give "test_translator:Outward", and'):
            dataclasses.replace(translator, order=order).translate(["green"])
    with pytest.raises(InputError, match=r"prompt: '{src}' is a text\. .*replace\(translator\.prompt, template="):
        dataclasses.replace(translator, prompt="{src}")
    with pytest.raises(InputError, match=r"needs the reference .* Give translate\(…, lengths=…\) those of the ref"):
        dataclasses.replace(translator, method=make_method("oracle", {}))
    assert "method=EntropyValley(" in repr(translator) and "Linear" not in repr(translator)
    assert "<" not in repr(translator)  # as of objects whose class has no repr


# --- Which translations are said to be doubtful.


class Words:
    """A tokenizer that knows all words but one."""

    unk_token_id = 0

    def __call__(self, text, **plain):
        return {"input_ids": [int(word != "☃") for word in text.split()]}


class Measured:
    """A translator for which the entropy of a sentence is its number of words; longer than nine does not fit."""

    prompt = Prompt("{src}", Words())

    def entropies(self, sources, names):
        return [float(len(source.split())) for source in sources if len(source.split()) < 10]


@given(st.lists(st.integers(1, 12), max_size=2 * SENTENCES), st.integers(1, 12))
def test_only_an_entropy_above_all_development_sentences_is_unusual(lengths, length):
    usual = TypicalEntropy.of(Measured(), ["word " * one for one in lengths])
    fitting = [one for one in lengths[:SENTENCES] if one < 10]
    assert usual.sentences == len(fitting)
    hints = usual.hints(Measured(), "any", Translation("text", canvas=4, entropies={4: float(length), 5: 99.0}))
    assert bool(hints) == bool(fitting and length > max(fitting))


def test_what_the_tokenizer_does_not_know_is_said_without_development_sentences(translator):
    usual, of_bytes = TypicalEntropy(), translator
    hints = [usual.hints(Measured(), source, Translation("text")) for source in ("a ☃", "a cat")]
    assert hints == [["has characters that the tokenizer does not know"], []]
    assert not usual.hints(of_bytes, "a ☃", Translation("text"))


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

    def test_a_class_that_cannot_work_is_an_error_and_no_sentence_is_skipped(self, translator):
        mine = SimpleNamespace(sees_reference=False, propose=lambda *_: [1.5], choose=None)
        with pytest.raises(InputError, match=r"propose: sentence 8: proposes 1\.5 slots"):
            dataclasses.replace(translator, method=mine).translate(["the cat"], skip=True, names=[8])

    def test_nothing_is_made_of_nothing(self, translator):
        assert translator.translate(["", " \t"]) == [Translation(""), Translation("")]
        assert translator.translate([]) == []
