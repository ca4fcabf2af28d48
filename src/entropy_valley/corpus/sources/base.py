"""What every source of sentence pairs has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field, PositiveInt

from entropy_valley.corpus.sampling import Pair
from entropy_valley.settings import Section


class Source(Section, ABC):
    """A source of sentence pairs. Its fields are its settings in the config; ``name`` says which source it is.

    ``splits``: the source itself keeps train, dev and test apart. ``endless``: its pairs never end. ``reversible``: of
    the reverse direction it has the same pairs with their sides exchanged, and reading it takes so long that one pass
    serves both.
    """

    splits: ClassVar[bool] = False
    endless: ClassVar[bool] = False
    reversible: ClassVar[bool] = False

    limit: PositiveInt | None = Field(None, description="as a test set: draw so many of its sentences by a keyed hash")
    challenge: PositiveInt | None = Field(
        None, description="as a test set: draw so many sentences that have dates, lists, names or numbers, stratified"
    )

    @abstractmethod
    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """The (source, target) pairs of one split; of the whole source where ``splits`` is false."""
