"""The meaning of a sentence of the synthetic corpus, without any language.

:mod:`.english`, :mod:`.chinese`, :mod:`.german` and :mod:`.french` are functions of these records alone, so the source
determines the translation.
"""

from __future__ import annotations

from typing import NamedTuple

from entropy_valley.demo.grammar.modifiers import Adjective, Opener
from entropy_valley.demo.grammar.nouns import Noun, Words
from entropy_valley.demo.grammar.verbs import Verb


class Pronoun(NamedTuple):
    """``person`` is 0 for I, 1 for he, she and every noun, 2 for we, 3 for the formal you."""

    en: str
    zh: str
    de: str
    fr: str
    person: int


class ObjectPronoun(NamedTuple):
    """A recipient: the German dative, the French clitic and its form after an imperative."""

    en: str
    zh: str
    de: str
    fr: str
    fr_stressed: str


SUBJECTS = (
    Pronoun("I", "我", "ich", "je", 0),
    Pronoun("he", "他", "er", "il", 1),
    Pronoun("she", "她", "sie", "elle", 1),
    Pronoun("we", "我们", "wir", "nous", 2),
    Pronoun("you", "您", "Sie", "vous", 3),
)
ME = ObjectPronoun("me", "我", "mir", "me", "moi")
US = ObjectPronoun("us", "我们", "uns", "nous", "nous")


class NounPhrase(NamedTuple):
    """``determiner`` is one of the, a, this, my, our, your, or digits (then the noun is plural)."""

    noun: Noun
    determiner: str = "the"
    adjective: Adjective | None = None

    @property
    def plural(self) -> bool:
        return self.determiner.isdigit()


Participant = NounPhrase | Words | Pronoun | ObjectPronoun


class Action(NamedTuple):
    """Someone does something, optionally to someone, at a time, a place or in a manner; ``mood``: tense or modal."""

    subject: Pronoun | NounPhrase | Words
    verb: Verb
    object: NounPhrase | Words
    mood: str = "present"
    recipient: NounPhrase | Words | ObjectPronoun | None = None
    time: Words | None = None
    place: Words | None = None
    manner: Words | None = None

    @property
    def person(self) -> int:
        return self.subject.person if isinstance(self.subject, Pronoun) else 1


class State(NamedTuple):
    """Something has a property."""

    subject: NounPhrase
    adjective: Adjective


class Change(NamedTuple):
    """A quantity rises or falls by a percentage; ``mood`` is present, perfect or will."""

    measure: Words
    city: Words | None
    rises: bool
    percent: int
    mood: str = "present"


Clause = Action | State | Change


class Command(NamedTuple):
    """An imperative; the subject of its action is left out."""

    action: Action
    polite: bool = False
    negative: bool = False


class Tap(NamedTuple):
    """An instruction to tap a label, optionally under a heading that is a placeholder."""

    label: Words
    heading: str = ""
    polite: bool = False


class Statement(NamedTuple):
    """A main clause, optionally after an opener."""

    clause: Clause
    opener: Opener | None = None


class Question(NamedTuple):
    """A question; without a ``word`` a yes-no question."""

    clause: Clause
    word: Words | None = None


class Conditional(NamedTuple):
    """A subordinate clause before a command or a statement."""

    conjunction: Words
    condition: Action
    main: Command | Tap | Action


class Reason(NamedTuple):
    """A main clause and a clause with *because*."""

    clause: Action
    reason: Action


Utterance = Command | Tap | Statement | Question | Conditional | Reason


def join(*parts: str) -> str:
    """The non-empty parts, separated by a space."""
    return " ".join(part for part in parts if part)


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[0].upper() + text[1:]
