"""Verb records of the synthetic corpus: the inflected forms in each language."""

from __future__ import annotations

from typing import NamedTuple


class English(NamedTuple):
    """Infinitive, third person and participle; ``particle`` follows the verb (``switch`` … ``on``)."""

    base: str
    third: str
    participle: str
    particle: str = ""


class German(NamedTuple):
    """Infinitive without its particle, first and third person singular, full participle.

    ``particle`` closes the clause: one word is a separable prefix, several are a fixed phrase.
    ``preposition`` governs an accusative object.
    """

    base: str
    first: str
    third: str
    participle: str
    particle: str = ""
    preposition: str = ""


class French(NamedTuple):
    """Infinitive, je, il, nous, vous and participle; ``particle`` follows the verb (``mettre`` … ``à jour``)."""

    infinitive: str
    je: str
    il: str
    nous: str
    vous: str
    participle: str
    particle: str = ""


class Verb(NamedTuple):
    """A transitive verb; ``objects`` are the kinds of noun it takes (see :class:`.nouns.Noun`).

    ``zh`` is a template of ``{o}`` (object), ``{p}`` (recipient, of ditransitive verbs only) and ``{le}`` (了).
    """

    objects: str
    en: English
    zh: str
    de: German
    fr: French
    voluntary: bool = True
