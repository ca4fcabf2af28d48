"""The synthetic corpus: sentences of a grammar, in four languages, that are translations by construction.

A meaning is drawn here and expressed by :mod:`.languages`. The source determines the translation, yet lengths vary:
an English word corresponds to one to four Chinese characters, a German compound or a fixed phrase.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from entropy_valley.data import sources
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import KIND, Source, Spans
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo import languages
from entropy_valley.experiment.demo.languages import (
    LEXICON,
    Action,
    Adjective,
    Change,
    Command,
    Conditional,
    Noun,
    NounPhrase,
    Opener,
    Pronoun,
    Question,
    Reason,
    State,
    Statement,
    Tap,
    Utterance,
    Verb,
    Words,
)
from entropy_valley.settings import RandomSeed

LANGUAGES = tuple(languages.LANGUAGES)
LONGEST = 14  # English words


def _rows(section: str, record: Any = Words) -> tuple[Any, ...]:
    """The words of a section of the lexicon; the forms of one are a tuple."""
    rows = ((tuple(cell) if isinstance(cell, list) else cell for cell in row) for row in LEXICON[section])
    return tuple(record(*row) for row in rows)


SUBJECTS = _rows("subjects", Pronoun)
RECIPIENTS = _rows("recipients", Pronoun)
NOUNS = _rows("nouns", Noun)
ADJECTIVES = _rows("adjectives", Adjective)
VERBS, DITRANSITIVE = _rows("verbs", Verb), _rows("ditransitive", Verb)
PEOPLE, CITIES, MEASURES, LABELS = map(_rows, ("people", "cities", "measures", "labels"))
PRODUCT = LABELS[-1]  # the placeholder #PRODUCT#
CONJUNCTIONS, QUESTIONS = map(_rows, ("conjunctions", "questions"))
OPENERS, LONG_OPENERS = _rows("openers", Opener), _rows("long_openers", Opener)
TIMES, CLOCK, HABITS, PAST = map(_rows, ("times", "clock", "habits", "past"))
MANNERS, PLACES, COMPANY = map(_rows, ("manners", "places", "company"))

# What goes together
_PERSONS = tuple(noun for noun in NOUNS if "p" in noun.kinds)
_OBJECTS = {verb: tuple(noun for noun in NOUNS if set(noun.kinds) & set(verb.objects)) for verb in VERBS + DITRANSITIVE}
_ATTRIBUTES = {noun: tuple(word for word in ADJECTIVES if set(word.kinds) & set(noun.kinds)) for noun in NOUNS}
_PREDICATES = {noun: tuple(word for word in words if word.predicative) for noun, words in _ATTRIBUTES.items()}
_DESCRIBED = tuple(noun for noun, words in _PREDICATES.items() if words)
_HEADINGS = LEXICON["headings"]


def stream(seed: int) -> Iterator[Words]:
    """Endless sentences of 3 to 14 English words, no two the same in any language; a function of ``seed``."""
    return (sentence for _, sentence in with_meanings(seed))


def with_meanings(seed: int) -> Iterator[tuple[Utterance, Words]]:
    """The sentences of :func:`stream`, each behind its meaning."""
    rng = Random(seed)
    seen: set[tuple[int, str]] = set()  # of each language apart
    while True:
        utterance = draw(rng)
        sentence = languages.express(utterance)
        texts = set(enumerate(sentence))
        if 3 <= sentence.en.count(" ") + 1 <= LONGEST and not texts & seen:
            seen |= texts
            yield utterance, sentence


def draw(rng: Random) -> Utterance:
    """One sentence's meaning: which sentences the corpus has, and how often.

    The order of the draws is part of the corpus: moving one changes every sentence after it.
    """
    kind = rng.random()
    if kind < 0.32:
        return _command(rng)
    if kind < 0.35:
        return Tap(rng.choice(LABELS), rng.choice(("", *_HEADINGS)), rng.random() < 0.5)
    if kind < 0.75:
        return Statement(_clause(rng), _opener(rng))
    if kind < 0.9:
        return _question(rng)
    if kind < 0.97:
        return _conditional(rng)
    return Reason(_action(rng, brief=True), _action(rng, brief=True))


def _command(rng: Random, brief: bool = False) -> Command:
    negative = rng.random() < 0.12
    action = _action(rng, subject=SUBJECTS[-1], moods=("imperative",), brief=brief, negative=negative)
    return Command(action, polite=rng.random() < 0.35, negative=negative)


def _clause(rng: Random) -> Action | State | Change:
    kind = rng.random()
    if kind < 0.8:
        return _action(rng)
    if kind < 0.88:
        return _state(rng)
    city = rng.choice(CITIES) if rng.random() < 0.4 else None
    mood = rng.choice(("present", "perfect", "will"))
    return Change(rng.choice(MEASURES), city, rng.random() < 0.5, rng.randint(2, 99), mood)


def _state(rng: Random) -> State:
    noun = rng.choice(_DESCRIBED)
    subject = NounPhrase(noun, rng.choice(("the", "this", "my", "our", "your")))
    return State(subject, rng.choice(_PREDICATES[noun]))


def _opener(rng: Random) -> Opener | None:
    """Rarely one whose length differs much between languages: the outliers of the corpus."""
    kind = rng.random()
    if kind < 0.06:
        return rng.choice(LONG_OPENERS)
    return rng.choice(OPENERS) if kind < 0.22 else None


def _question(rng: Random) -> Question:
    if rng.random() < 0.5:
        clause = _clause(rng)
        return Question(clause) if getattr(clause, "mood", "") != "cannot" else Question(_state(rng))
    word = rng.choice(QUESTIONS)
    return Question(_action(rng, moods=("present", "must", "want", "will"), timed=False), word)


def _conditional(rng: Random) -> Conditional:
    kind = rng.random()
    main: Tap | Command | Action
    if kind < 0.25:
        main = Tap(rng.choice(LABELS), rng.choice(("", "", *_HEADINGS)), rng.random() < 0.3)
    elif kind < 0.6:
        main = _command(rng, brief=True)
    else:
        main = _action(rng, moods=("can", "must", "will"), brief=True)
    conjunction = rng.choice(CONJUNCTIONS)
    return Conditional(conjunction, _action(rng, moods=("present", "want"), brief=True), main)


def _action(
    rng: Random,
    subject: Pronoun | None = None,
    moods: tuple[str, ...] = (),
    brief: bool = False,
    timed: bool = True,
    negative: bool = False,
) -> Action:
    """An action that makes sense in one of ``moods`` (default: any); a brief one has no place or manner."""
    while True:
        someone = subject or _subject(rng)
        mood = rng.choice(moods) if moods else _weighted(rng, "moods")
        verb = rng.choice(DITRANSITIVE if rng.random() < 0.17 else VERBS)
        while not _possible(verb, mood):
            verb = rng.choice(VERBS)
        recipient = _recipient(rng, someone) if verb in DITRANSITIVE else None
        target = _object(rng, verb, negative or mood == "cannot")
        place, manner = (None, None) if brief else _circumstance(rng)
        time = _time(rng, mood, brief) if timed else None
        people = [words.en for words in (someone, target, recipient) if isinstance(words, Words)]
        if manner:
            people.append(manner.en.removeprefix("together with "))
        if len(set(people)) == len(people):  # nobody occurs twice
            return Action(someone, verb, target, mood, recipient, time, place, manner)


def _possible(verb: Verb, mood: str) -> bool:
    """Whether a verb has this mood: only voluntary ones have modals, and the perfect needs a 了 in the template."""
    if mood == "perfect":
        return "{le}" in verb.zh
    return mood == "present" or verb.en[0] not in LEXICON["involuntary"]


def _subject(rng: Random) -> Pronoun | NounPhrase | Words:
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(SUBJECTS)
    if kind < 0.75:
        return rng.choice(PEOPLE)
    return NounPhrase(rng.choice(_PERSONS), rng.choice(("the", "the", "my", "our")))


def _recipient(rng: Random, subject: Pronoun | NounPhrase | Words) -> NounPhrase | Words | Pronoun:
    kind = rng.random()
    if kind < 0.4 and not (isinstance(subject, Pronoun) and subject.person in (0, 2)):
        return rng.choice(RECIPIENTS)
    return rng.choice(PEOPLE) if kind < 0.7 else NounPhrase(rng.choice(_PERSONS), rng.choice(("the", "my", "your")))


def _object(rng: Random, verb: Verb, negative: bool) -> NounPhrase | Words:
    """A negated object is definite: German would negate an indefinite one by *kein*."""
    if verb.objects == "p" and rng.random() < 0.4:
        return rng.choice(PEOPLE)
    if "x" in verb.objects and rng.random() < 0.1:
        return PRODUCT
    noun = rng.choice(_OBJECTS[verb])
    determiner = _weighted(rng, "determiners")
    if negative and determiner in ("a", "number"):
        determiner = "the"
    if determiner == "number":
        determiner = str(rng.randint(2, 30))
    adjectives = _ATTRIBUTES[noun]
    return NounPhrase(noun, determiner, rng.choice(adjectives) if adjectives and rng.random() < 0.18 else None)


def _time(rng: Random, mood: str, brief: bool) -> Words | None:
    if rng.random() > (0.15 if brief else 0.4):
        return None
    if mood == "perfect":
        return rng.choice(PAST)
    if mood == "present":
        return rng.choice(HABITS)
    return rng.choice(TIMES if rng.random() < 0.75 else CLOCK)


def _circumstance(rng: Random) -> tuple[Words | None, Words | None]:
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(PLACES), None
    if kind < 0.15:
        return None, rng.choice(COMPANY)
    return None, rng.choice(MANNERS) if kind < 0.18 else None


def _weighted(rng: Random, what: str) -> str:
    weights = LEXICON["how_often"][what]
    return rng.choices([*weights], [*weights.values()])[0]


_FORMS = {"en": ("en", "en_plural"), "zh": ("zh",), "de": ("de", "de_plural", "oblique"), "fr": ("fr", "fr_plural")}


def anchors(meaning: Utterance, language: str, text: str) -> list[list[int]]:
    """The parts ``[start, end]`` of ``text`` that express a noun, verb, adjective, fixed expression or number of its
    meaning, ascending; each is there in every other language too.

    A word counts with its inflection: of its forms the longest one, and in a language with spaces the whole word that
    begins with it. One that its dictionary forms do not show, such as a German participle behind a separable prefix,
    is left out.
    """
    spans = set()
    for forms in _words(meaning, language):
        patterns = (rf"(?<![a-zA-ZÀ-ÿ]){re.escape(form)}[a-zà-ÿ]*" for form in forms if form)
        matches = [match.span() for pattern in patterns if (match := re.search(pattern, text, re.IGNORECASE))]
        if matches:
            spans.add(max(matches, key=lambda span: span[1] - span[0]))
    return [list(span) for span in sorted(spans)]


def _words(meaning: Any, language: str) -> Iterator[Iterable[str]]:
    """The forms of each word of a meaning."""
    if isinstance(meaning, Noun | Words | Adjective):
        forms = [getattr(meaning, name, "") for name in _FORMS[language]]
        yield forms if isinstance(forms[0], str) else forms[0]  # a French adjective has its four forms in one
    elif isinstance(meaning, Verb):
        yield getattr(meaning, language) if language != "zh" else re.split(r"\{\w+\}", meaning.zh)
    elif isinstance(meaning, tuple) and not isinstance(meaning, Pronoun):
        for part in meaning:
            yield from _words(part, language)
    elif re.fullmatch(r"\d+|#\w+#", str(meaning)):
        yield [str(meaning)]


# --- The source of the config: pairs of these sentences, drawn anew at each use.


class Synthetic(Source):
    """The synthetic corpus of this project's grammar; its pairs never end."""

    splits: ClassVar[bool] = True
    endless: ClassVar[bool] = True

    name: Literal["embedded"] = KIND
    seed: RandomSeed = Field(0, description="of its sentences, whatever the seed of the corpus is")
    aligned: Literal[True] | None = Field(
        None, description="as a test set: with the grammar's own alignment, for the order oracle_anchor"
    )

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """Endless pairs of one split.

        The hash of a sentence's English decides its split, whatever the direction and the seed: no direction trains on
        what another is tested on.
        """
        source, target = direction.split("-")
        if unknown := {source, target} - set(LANGUAGES):
            problem = f"does not speak {', '.join(sorted(unknown))}"
            raise InputError(f"synthetic corpus: {direction}", problem, f"Use two of {', '.join(LANGUAGES)}.")
        sentences = (one for one in stream(self.seed) if _split_of(one) == split)
        return ((getattr(one, source), getattr(one, target)) for one in sentences)

    def spans(self, direction: str) -> Iterator[Spans] | None:
        """The words of each test sentence that the grammar aligns, see :func:`anchors`."""
        if not self.aligned:
            return None
        target = direction.split("-")[1]
        tests = (one for one in with_meanings(self.seed) if _split_of(one[1]) == "test")
        return (anchors(meaning, target, getattr(sentence, target)) for meaning, sentence in tests)


def _split_of(sentence: Words) -> str:
    """``test`` or ``dev`` for one sentence in 32 each, ``train`` for the rest."""
    bucket = hashlib.blake2b(sentence.en.encode(), digest_size=1).digest()[0] % 64
    return "test" if bucket < 2 else "dev" if bucket < 4 else "train"


SOURCES: sources.Kinds = (*sources.SOURCES, Synthetic)
if TYPE_CHECKING:
    AnySource = Source
else:
    AnySource = sources.any_of(SOURCES)
