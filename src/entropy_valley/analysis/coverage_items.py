"""What a translation should keep of its source, letter by letter: placeholders, numbers, capitalised words.

The patterns of placeholders and numbers find the paper's numbers of sentences on WMT22. It does not say how it finds
its "capitalised named-entity tokens".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from entropy_valley.data.categories import NUMBER, PLACEHOLDER

PLACEHOLDERS, NUMBERS, ENTITIES = "placeholder", "number", "entity"  # as in the transcription of the paper
CAPITALS_MARK_NAMES = ("en", "fr")  # not in German, which capitalises all nouns; Chinese has no capitals
_CAPITALISED = re.compile(r"\b[A-Z]\w+\b")


def capitalised_words(text: str) -> list[str]:
    """Words of two letters or more that begin with a capital; neither the first of the text, nor in a placeholder.

    A heuristic: it also finds the first words of further sentences.
    """
    _, *others = text.split() or [""]
    return _CAPITALISED.findall(PLACEHOLDER.sub(" ", " ".join(others)))


EXTRACTORS: Mapping[str, Callable[[str], Sequence[str]]] = {
    PLACEHOLDERS: PLACEHOLDER.findall,
    NUMBERS: NUMBER.findall,
    ENTITIES: capitalised_words,
}


def extractors(language: str) -> dict[str, Callable[[str], Sequence[str]]]:
    """By kind, in the paper's order, how the items of a source in this language are found."""
    return {kind: of for kind, of in EXTRACTORS.items() if kind != ENTITIES or language in CAPITALS_MARK_NAMES}


def retention(items: Sequence[str], output: str) -> float:
    """The share of the items that the output contains as they are; an item that the source has twice counts twice.

    Raises ValueError where there is none.
    """
    if not items:
        raise ValueError("no items: their retention is not defined")
    return sum(item in output for item in items) / len(items)
