"""The synthetic corpus: pairs of the grammar's sentences, made anew wherever they are needed.

A sentence belongs to one split by a hash of its English, whatever the direction, the size or the seed: what is
tested in one direction is trained on in none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from entropy_valley.corpus import sources
from entropy_valley.corpus.sampling import Pair
from entropy_valley.demo import grammar
from entropy_valley.errors import InputError

SPLITS = ("train", "dev", "test")
_HELD_OUT = {0: "test", 1: "test", 2: "dev", 3: "dev"}
_BUCKETS = 64


def split_of(sentence: grammar.Sentence) -> str:
    """``test`` or ``dev`` for one sentence in 32 each, ``train`` for the rest."""
    return _HELD_OUT.get(hashlib.blake2b(sentence.en.encode(), digest_size=1).digest()[0] % _BUCKETS, "train")


def sentences(split: str, seed: int) -> Iterator[grammar.Sentence]:
    """The sentences of one split in the order of the grammar's stream, without end."""
    return (sentence for sentence in grammar.stream(seed) if split_of(sentence) == split)


def pairs(direction: str, split: str, size: int, seed: int) -> list[tuple[str, str]]:
    """The first ``size`` (source, target) pairs of a split; a smaller size is the beginning of a larger one."""
    source, target = direction.split("-")
    return [(getattr(one, source), getattr(one, target)) for one in islice(sentences(split, seed), size)]


@dataclass(frozen=True)
class Embedded:
    """The grammar of this package; its pairs never end, and depend on its own ``seed`` alone."""

    seed: int = 0

    splits = True
    endless = True

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        source, target = direction.split("-")
        unknown = {source, target} - set(grammar.LANGUAGES)
        if unknown:
            raise InputError(
                f"embedded corpus: {direction}",
                f"does not speak {', '.join(sorted(unknown))}",
                f"Use two of {', '.join(grammar.LANGUAGES)}.",
            )
        return ((getattr(one, source), getattr(one, target)) for one in sentences(split, self.seed))


SOURCES = sources.SOURCES | {"embedded": Embedded}
