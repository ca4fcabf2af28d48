"""Where sentence pairs come from: the registry that a configuration's ``source`` names.

A source specification is a mapping with ``name`` and the keys of that source (defaults in brackets):

===========  ============================================================================================
embedded     seed [0]: the grammar of this package, any direction of en, zh, de and fr; has splits
huggingface  dataset, subset, split ["train"], columns {language: column} [{}], folder [null], revision [null]
wmt22        folder [null]: en-zh, en-de, and zh-en with the roles swapped
tatoeba      folder [null], held_out [0.02]; has splits
files        source, target: two text files, a sentence a line
===========  ============================================================================================

FLORES devtest is ``huggingface`` with its ``columns``, or ``files``. A source with splits keeps train, dev and test
apart itself; the others give all they have, and train and dev are drawn from it by hash (:mod:`.sampling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from entropy_valley.corpus import embedded, grammar
from entropy_valley.corpus.files import read_parallel
from entropy_valley.corpus.huggingface import HuggingFace
from entropy_valley.corpus.sampling import Pair
from entropy_valley.corpus.tatoeba import Tatoeba
from entropy_valley.corpus.wmt22 import Wmt22
from entropy_valley.errors import InputError


class Source(Protocol):
    """A supplier of sentence pairs; ``splits`` says whether it keeps train, dev and test apart itself."""

    splits: bool

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """(source, target) pairs of one split (of everything, without splits); an embedded one never ends."""
        ...


@dataclass(frozen=True)
class Embedded:
    """The grammar of this package; its pairs never end, and depend on its own ``seed`` alone."""

    seed: int = 0

    splits = True

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        source, target = direction.split("-")
        unknown = {source, target} - set(grammar.LANGUAGES)
        if unknown:
            raise InputError(
                f"embedded corpus: {direction}",
                f"does not speak {', '.join(sorted(unknown))}",
                f"Use two of {', '.join(grammar.LANGUAGES)}.",
            )
        return ((getattr(one, source), getattr(one, target)) for one in embedded.sentences(split, self.seed))


@dataclass(frozen=True)
class Files:
    """Two text files of the user's own."""

    source: str
    target: str

    splits = False

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        return iter(read_parallel(self.source, self.target))


REGISTRY: dict[str, Callable[..., Source]] = {
    "embedded": Embedded,
    "huggingface": HuggingFace,
    "wmt22": Wmt22,
    "tatoeba": Tatoeba,
    "files": Files,
}


def make(specification: Mapping[str, Any]) -> Source:
    """The source that ``specification`` names; an unknown name or key is an InputError, null is a key's default."""
    keys = {key: value for key, value in specification.items() if value is not None}
    name = keys.pop("name", None)
    if name not in REGISTRY:
        raise InputError("source", f"unknown name {name!r}", f"Use one of {', '.join(REGISTRY)}.")
    try:
        return REGISTRY[name](**keys)
    except TypeError as error:
        raise InputError(
            f"source {name}", str(error).partition(" ")[2], "entropy_valley.corpus.sources lists its keys."
        ) from None
