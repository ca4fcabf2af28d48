"""What every source of sentence pairs has in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, PositiveInt

from entropy_valley import files
from entropy_valley.data.dataset import HubFiles
from entropy_valley.data.sampling import Pair
from entropy_valley.errors import InputError, brief
from entropy_valley.settings import JsonObject, Section

Spans = list[list[int]]  # [start, end] of parts of a text, in characters
KIND = Field(description="the kind of source")


class Source(Section, ABC):
    """A source of sentence pairs. Its fields are its settings in the config; ``name`` says which source it is.

    ``splits``: the source itself keeps train, dev and test apart. ``endless``: its pairs never end. ``slow``: reading
    it takes minutes and needs no network, so that a cluster has a job for it. ``given``: its splits are files that are
    taken as they are, nothing is drawn or filtered. ``by_language``: the setting that has an entry for each of its
    languages, but for those in ``usual``.
    """

    splits: ClassVar[bool] = False
    endless: ClassVar[bool] = False
    slow: ClassVar[bool] = False
    given: ClassVar[bool] = False
    by_language: ClassVar[str | None] = None
    usual: ClassVar[Mapping[str, str]] = {}

    limit: PositiveInt | None = Field(None, description="as a test set: so many of its sentences, see `corpus.subset`")
    challenge: PositiveInt | None = Field(
        None,
        description="as a test set: so many sentences that have dates, lists, names or numbers, see `corpus.challenge`",
    )

    @abstractmethod
    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """The (source, target) pairs of one split; of the whole source where ``splits`` is false."""

    def unstripped(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """:meth:`pairs` with the blanks around their texts, where the source has such."""
        return self.pairs(direction, split, seed)

    def settings(self, direction: str, *splits: str) -> JsonObject:
        """What these splits of a direction depend on, as plain values, without the numbers of sentences."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"limit", "challenge"})

    def spans(self, direction: str) -> Iterator[Spans] | None:
        """The anchors of each sentence of a test set, in its order: the parts of its target that are aligned with its
        source, for the order oracle_anchor. None if there are none."""
        return None

    @property
    def total(self) -> int | None:
        """How many pairs it must have, where that is a check and no part of :meth:`settings`."""
        return None

    @property
    def size(self) -> int | None:
        """How many pairs it has, as far as that is known before it is read."""
        return self.total

    def origin(self, direction: str, *splits: str) -> JsonObject:
        """What these splits were read from, for the record of the job: digests of files that are not its inputs."""
        paths = self._paths(direction)
        return {"files": files.digests(paths)} if paths else {}

    def _paths(self, direction: str) -> Sequence[Path]:
        """The files of a release that it reads, in a folder or in the cache, where they are fetched."""
        return ()

    @property
    def download(self) -> HubFiles | None:
        """What of the hub is downloaded before it is read, into the folder that its setting ``folder`` then names; None
        if nothing is."""
        return None

    def own_files(self, direction: str, *splits: str) -> list[str]:
        """The user's own files that these splits are read from; none if they come from elsewhere."""
        return []

    def refused(self, direction: str, *splits: str) -> str | None:
        """Why it cannot give these splits of a direction, as far as its settings tell; None if nothing is known."""
        if self.by_language is None:
            return None
        entries = {**self.usual, **getattr(self, self.by_language)}
        missing = [language for language in direction.split("-") if language not in entries]
        return f"has no entry of {' and '.join(missing)} under `{self.by_language}`; add it" if missing else None


def text_at(row: Any, key: str, place: object) -> str:
    """The text of a row under a key, whose dots lead into blocks of the row; empty for a null, also of such a block.

    Raises InputError where there is none, and for any other value.
    """
    value, remedy = row, "Name the keys or columns of its texts in the source's settings."
    for name in key.split("."):
        if value is None:
            break
        if not isinstance(value, Mapping) or name not in value:
            raise InputError(place, f"no {key}", remedy)
        value = value[name]
    if not isinstance(value, str | None):
        raise InputError(place, f"{key} is {brief(repr(value), 60)}, not a text", remedy)
    return value or ""


def reverse(direction: str) -> str:
    """The direction with its languages swapped."""
    return "-".join(reversed(direction.split("-")))
