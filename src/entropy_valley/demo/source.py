"""The synthetic corpus: pairs of the grammar's sentences, drawn anew at each use."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from entropy_valley.data import sources
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import Source, Spans
from entropy_valley.demo import grammar
from entropy_valley.errors import InputError

_HELD_OUT = {0: "test", 1: "test", 2: "dev", 3: "dev"}
_BUCKETS = 64


class Synthetic(Source):
    """The synthetic corpus of this project's grammar; its pairs never end."""

    splits: ClassVar[bool] = True
    endless: ClassVar[bool] = True

    name: Literal["embedded"] = Field(description="the kind of source")
    seed: int = Field(0, description="of its sentences, whatever the seed of the corpus is")
    aligned: Literal[True] | None = Field(
        None, description="as a test set: `anchors` by the grammar's own alignment, in place of a file"
    )

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """Endless pairs of one split.

        The hash of a sentence's English decides its split, whatever the direction and the seed: no direction trains on
        what another is tested on.
        """
        source, target = direction.split("-")
        unknown = {source, target} - set(grammar.LANGUAGES)
        if unknown:
            raise InputError(
                f"synthetic corpus: {direction}",
                f"does not speak {', '.join(sorted(unknown))}",
                f"Use two of {', '.join(grammar.LANGUAGES)}.",
            )
        sentences = (one for one in grammar.stream(self.seed) if _split_of(one) == split)
        return ((getattr(one, source), getattr(one, target)) for one in sentences)

    @property
    def has_anchors(self) -> bool:
        return bool(self.aligned or self.anchors)

    def spans(self, direction: str) -> Iterator[Spans] | None:
        """The words of each test sentence that the grammar aligns, see :func:`.grammar.anchors`."""
        if not self.aligned:
            return super().spans(direction)
        target = direction.split("-")[1]
        tests = (one for one in grammar.with_meanings(self.seed) if _split_of(one[1]) == "test")
        return (grammar.anchors(meaning, target, getattr(sentence, target)) for meaning, sentence in tests)


def _split_of(sentence: grammar.Words) -> str:
    """``test`` or ``dev`` for one sentence in 32 each, ``train`` for the rest."""
    return _HELD_OUT.get(hashlib.blake2b(sentence.en.encode(), digest_size=1).digest()[0] % _BUCKETS, "train")


SOURCES = (*sources.SOURCES, Synthetic)
AnySource = sources.any_of(SOURCES)
