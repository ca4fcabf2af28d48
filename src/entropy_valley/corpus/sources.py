"""Where sentence pairs come from: the registry that a configuration's ``source`` names.

A source specification is a mapping with ``name`` and the keys of that source (defaults in brackets):

===========  ============================================================================================
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

from entropy_valley.corpus.files import read_parallel
from entropy_valley.corpus.huggingface import HuggingFace
from entropy_valley.corpus.sampling import Pair
from entropy_valley.corpus.tatoeba import Tatoeba
from entropy_valley.corpus.wmt22 import Wmt22
from entropy_valley.errors import InputError


class Source(Protocol):
    """A supplier of sentence pairs.

    ``splits``: it keeps train, dev and test apart itself. ``endless``: its pairs never end.
    """

    splits: bool
    endless: bool

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """(source, target) pairs of one split (of everything, without splits)."""
        ...


@dataclass(frozen=True)
class Files:
    """Two text files of the user's own."""

    source: str
    target: str

    splits = False
    endless = False

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        return iter(read_parallel(self.source, self.target))


SOURCES: dict[str, Callable[..., Source]] = {
    "huggingface": HuggingFace,
    "wmt22": Wmt22,
    "tatoeba": Tatoeba,
    "files": Files,
}


def make(specification: Mapping[str, Any], known: Mapping[str, Callable[..., Source]] = SOURCES) -> Source:
    """The source that ``specification`` names; an unknown name or key is an InputError, null is a key's default."""
    keys = {key: value for key, value in specification.items() if value is not None}
    name = keys.pop("name", None)
    if name not in known:
        raise InputError("source", f"unknown name {name!r}", f"Use one of {', '.join(known)}.")
    try:
        return known[name](**keys)
    except TypeError as error:
        raise InputError(
            f"source {name}", str(error).partition(" ")[2], "entropy_valley.corpus.sources lists its keys."
        ) from None
