"""Categories of English sentences by the rules of the paper's authors, as their code has them: docs/protocol.md.

On WMT22's English sources, the first 400 sentences with a category have exactly the paper's counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

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

    "#PRS_ORG#," is no such word, "Sign" is one.
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


def categories(text: str) -> tuple[str, ...]:
    """The categories of an English sentence, in the paper's order; it may have several, or none."""
    return tuple(name for name, found in RULES.items() if found(text))
