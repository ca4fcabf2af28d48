"""The grammar of the synthetic corpus: its sentences in four languages are translations by construction.

A meaning is drawn (:mod:`.draw`) and expressed in English, Chinese, German and French, each by a function of the
meaning alone. There are no synonyms, so the source determines the translation. Lengths still vary: an English word
corresponds to one to four Chinese characters, a German compound or a fixed phrase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from entropy_valley.demo.grammar import chinese, draw, english, french, german, meaning

LANGUAGES = ("en", "zh", "de", "fr")
LONGEST = 14


@dataclass(frozen=True, slots=True)
class Sentence:
    """One meaning in four languages."""

    en: str
    zh: str
    de: str
    fr: str


def stream(seed: int) -> Iterator[Sentence]:
    """Endless sentences of 3 to 14 English words, no two the same in any language; a function of ``seed``."""
    return (sentence for _, sentence in meant(seed))


def meant(seed: int) -> Iterator[tuple[meaning.Utterance, Sentence]]:
    """The sentences of :func:`stream`, each behind its meaning."""
    rng = Random(seed)
    seen: tuple[set[str], ...] = tuple(set() for _ in LANGUAGES)
    while True:
        utterance = draw.utterance(rng)
        sentence = Sentence(*(speak.sentence(utterance) for speak in (english, chinese, german, french)))
        if not 3 <= sentence.en.count(" ") + 1 <= LONGEST:
            continue
        texts = (sentence.en, sentence.zh, sentence.de, sentence.fr)
        if any(text in known for text, known in zip(texts, seen, strict=True)):
            continue
        for text, known in zip(texts, seen, strict=True):
            known.add(text)
        yield utterance, sentence


def generate(count: int, seed: int) -> list[Sentence]:
    """The first ``count`` sentences of :func:`stream`."""
    return list(islice(stream(seed), count))
