"""Dates, lists, names and numbers in English sentences, by the rules of the paper's authors; the challenge subset."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from entropy_valley.data.sampling import Pair, shortage
from entropy_valley.errors import InputError
from entropy_valley.texts import base_language

CATEGORIES = ("dates", "enumeration", "named entities", "numbers")  # the paper's, in its order
NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*%?\b")
PLACEHOLDER = re.compile(r"#[A-Z_]+#")  # WMT22's, in place of names

# --- Categories of English sentences as the authors' code has them: docs/protocol.md. A sentence may have several.
#
# On WMT22's English sources, the first 400 sentences with a category have exactly the paper's counts.

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_ORDINALS = "first|second|third|fourth|fifth"
_DATES = (
    rf"\b(?:{_MONTHS})\s+\d+",
    rf"\b(?:{_DAYS})\b",
    r"\b\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b",
    r"\b\d{4}[-/]\d{1,2}[-/]\d{1,2}\b",
)
_ENUMERATION = (
    rf"\b(?:{_ORDINALS})\b.*\b(?:{_ORDINALS})\b",
    r",\s*(?:and|or)\s",  # with their rule for "A, B, and C", which this one contains
    r"\b\d+\)\s",
)
_NUMBERS = (
    r"\b\d{2,}\b",  # with their rule for years
    r"\b\d+[,.]\d+\b",
    r"\d+%",
    r"\$\d+",
    r"\d+\s*(?:million|billion|thousand|hundred)",
)


def _any(*patterns: str) -> Callable[[str], bool]:
    compiled = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    return lambda text: compiled.search(text) is not None


def _named_entities(text: str) -> bool:
    """Two words after the first that begin with a capital, have another letter, and are not all capitals.

    "#PRS_ORG#," is not such a word, "Sign" is one.
    """
    capitalised = (word for word in text.split()[1:] if word[0].isupper() and not word.isupper() and len(word) > 1)
    return sum(1 for _ in capitalised) >= 2


RULES: Mapping[str, Callable[[str], bool]] = {
    "dates": _any(*_DATES),
    "enumeration": _any(*_ENUMERATION),
    "named entities": _named_entities,
    "numbers": _any(*_NUMBERS),
}
"""By category, in the paper's order."""


def published_categories(text: str) -> tuple[str, ...]:
    """The categories of an English sentence, in the paper's order; it may have several, or none."""
    return tuple(name for name, matches in RULES.items() if matches(text))


# --- The challenge subset of a test set: the first sentences of the file that have a category, by the English side.

Numbered = tuple[int, Pair]


def refused(direction: str) -> str | None:
    """Why the rules find no categories in a direction; None if they do."""
    english = "en" in map(base_language, direction.split("-"))
    return None if english else f"the rules are for English, and {direction} has no such side"


def categories_of(pair: Pair, direction: str) -> tuple[str, ...]:
    """The categories of a (source, target) pair; InputError where :func:`refused` has a reason."""
    if problem := refused(direction):
        raise InputError(f"challenge subset: {direction}", problem, "Name another test set.")
    return published_categories(pair[[*map(base_language, direction.split("-"))].index("en")])


def challenge(numbered: Iterable[Numbered], size: int, direction: str) -> list[Numbered]:
    """The first ``size`` numbered pairs that have a category.

    Raises InputError if there are too few.
    """
    drawn = list(islice((item for item in numbered if categories_of(item[1], direction)), size))
    if len(drawn) < size:
        raise shortage(len(drawn), size, "challenge subset")
    return drawn
