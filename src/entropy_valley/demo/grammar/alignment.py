"""Which parts of a sentence express the words of its meaning: the grammar's own alignment with the other languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from entropy_valley.demo.grammar.meaning import Pronoun
from entropy_valley.demo.grammar.modifiers import Adjective
from entropy_valley.demo.grammar.nouns import Noun, Words
from entropy_valley.demo.grammar.verbs import Verb

_FIELDS = {"en": ("en", "en_plural"), "zh": ("zh",), "de": ("de", "de_plural", "oblique"), "fr": ("fr", "fr_plural")}


def anchors(meaning: Any, language: str, text: str) -> list[list[int]]:
    """The parts ``[start, end]`` of ``text`` that express a noun, verb, adjective, fixed expression or number of its
    meaning, ascending; each is there in every other language too.

    A word counts with its inflection. One that its dictionary forms do not show, such as a German participle behind a
    separable prefix, is left out.
    """
    spans = {span for forms in _words(meaning, language) if (span := _longest(forms, text))}
    return [list(span) for span in sorted(spans)]


def _words(meaning: Any, language: str) -> Iterator[list[str]]:
    """The forms of each word of a meaning."""
    if isinstance(meaning, Noun | Words | Adjective):
        yield _strings([getattr(meaning, name, "") for name in _FIELDS[language]])
    elif isinstance(meaning, Verb):
        yield _strings(getattr(meaning, language)) if language != "zh" else re.split(r"\{\w+\}", meaning.zh)
    elif isinstance(meaning, tuple) and not isinstance(meaning, Pronoun):
        for part in meaning:
            yield from _words(part, language)
    elif re.fullmatch(r"\d+|#\w+#", str(meaning)):
        yield [str(meaning)]


def _strings(forms: Any) -> list[str]:
    """All texts in nested tuples."""
    return [forms] if isinstance(forms, str) else [text for form in forms for text in _strings(form)]


def _longest(forms: list[str], text: str) -> tuple[int, int] | None:
    """Where the longest of the forms stands; in a language with spaces whole words that begin with it."""
    found = [
        match.span()
        for form in filter(None, forms)
        if (match := re.search(rf"(?<![a-zA-ZÀ-ÿ]){re.escape(form)}[a-zà-ÿ]*", text, re.IGNORECASE))
    ]
    return max(found, key=lambda span: span[1] - span[0], default=None)
