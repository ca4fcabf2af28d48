"""A small world spoken in four languages: a synchronous grammar whose sentences are translations by construction.

A sentence is drawn as a meaning (:mod:`.draw`) and realised in English, Chinese, German and French, each by a
function of that meaning alone. There are no synonyms to choose between, so a translation is decided by its
source; its length is not, because one English word stands for one to four Chinese characters, a German compound
or a fixed phrase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from entropy_valley.demo.grammar import chinese, draw, english, french, german

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
    """Sentences without end, of 3 to 14 English words, no two alike in any language; a function of ``seed``."""
    rng = Random(seed)
    seen: tuple[set[str], ...] = tuple(set() for _ in LANGUAGES)
    while True:
        meaning = draw.utterance(rng)
        sentence = Sentence(*(speak.sentence(meaning) for speak in (english, chinese, german, french)))
        if not 3 <= sentence.en.count(" ") + 1 <= LONGEST:
            continue
        texts = (sentence.en, sentence.zh, sentence.de, sentence.fr)
        if any(text in known for text, known in zip(texts, seen, strict=True)):
            continue
        for text, known in zip(texts, seen, strict=True):
            known.add(text)
        yield sentence


def generate(count: int, seed: int) -> list[Sentence]:
    """The first ``count`` sentences of :func:`stream`: a shorter list is the beginning of a longer one."""
    return list(islice(stream(seed), count))
