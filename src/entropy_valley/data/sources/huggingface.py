"""A parallel data set of the Hugging Face hub, or a local copy of its files, read as a stream.

Its files are Parquet, SUBSET/SPLIT-*.parquet. pyarrow reads them a thousand rows at a time: tens of millions of rows
need no more memory than one million. On the hub it reads ranges of bytes, so a lost connection costs one range.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal

from pydantic import Field, PositiveInt

from entropy_valley import files
from entropy_valley.data import dataset
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import Source
from entropy_valley.errors import InputError
from entropy_valley.settings import Repository

if TYPE_CHECKING:
    import pyarrow.parquet

    from entropy_valley import hub

_ROWS = 1000  # at a time; row groups of the hub have as many


class HuggingFace(Source):
    """A translation data set of the Hugging Face hub."""

    reversible: ClassVar[bool] = True

    name: Literal["huggingface"] = Field(description="the kind of source")
    dataset: Repository = Field(description="its name on the hub, like wmt/wmt19")
    subset: str = Field(description="its configuration there, like zh-en")
    split: str = Field("train", description="its split there")
    rows: PositiveInt | None = Field(
        None, description="how many rows the split must have; another number is refused, null: not checked"
    )
    columns: dict[str, str] = Field(
        {},
        description="column of each language; dots for nested ones; default: translation.LANGUAGE, as in the WMT sets",
    )
    revision: str | None = Field(
        None, description="a commit or tag of the data set; null: the newest, which is kept in the results"
    )
    folder: str | None = Field(
        None, description="a local copy of the repository, read instead: its SUBSET/SPLIT-*.parquet"
    )

    @property
    def total(self) -> int | None:
        return self.rows

    def settings(self, direction: str, *splits: str) -> dict[str, Any]:
        """As of any source, without the number of rows, which changes nothing of what is read."""
        return {key: value for key, value in super().settings(direction, *splits).items() if key != "rows"}

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the data set, without leading and trailing blanks."""
        return ((one.strip(), other.strip()) for one, other in self.unstripped(direction, split, seed))

    def unstripped(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the data set, as they are. Raises InputError behind the last one if it is not the
        number of rows that the config gives."""
        source, target = (self.columns.get(one, f"translation.{one}").split(".") for one in direction.split("-"))
        count = 0
        for row in self._rows():
            count += 1
            yield self._text(row, source), self._text(row, target)
        if self.rows not in (None, count):
            remedy = "Correct the source's `rows`, or name the commit that you mean as its `revision`."
            raise InputError(self._place, f"{count} rows instead of {self.rows}", remedy)

    def origin(self, direction: str, *splits: str) -> dict[str, Any]:
        if self.folder:
            return {"files": files.digests(self._local())}
        commit, shards = self._published
        return {"dataset": self.dataset, "revision": commit.commit, "files": {one.name: one.sha256 for one in shards}}

    @property
    def _place(self) -> str:
        return f"data set {self.dataset} ({self.subset}, {self.split})"

    def _rows(self) -> Iterator[dict[str, Any]]:
        import pyarrow.parquet  # takes a moment, and only this stage has it

        try:
            for shard in self._shards():
                with shard as opened, pyarrow.parquet.ParquetFile(opened) as table:
                    yield from _rows_of(table)
        except (OSError, pyarrow.ArrowException) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(self._place, f"cannot be read: {first}", self._remedy()) from None

    def _shards(self) -> Iterator[BinaryIO]:
        """The files of the split, opened one after the other."""
        from entropy_valley import hub  # only reading takes huggingface_hub, which loads slowly

        if self.folder:
            return (path.open("rb") for path in self._local())
        commit, shards = self._published
        dataset.require_agreement(commit, [shard.name for shard in shards])
        return (hub.opened(commit, shard, "the source's `folder`") for shard in shards)

    def _local(self) -> list[Path]:
        shards = sorted(Path(self.folder, self.subset).glob(f"{self.split}-*.parquet"))
        if not shards:
            raise InputError(Path(self.folder, self.subset), f"no {self.split}-*.parquet", self._remedy())
        return shards

    @functools.cached_property
    def _published(self) -> tuple[hub.Listing, list[hub.File]]:
        """The commit on the hub and the split's files there: of one commit to the end, though a newer one may come."""
        try:
            commit = dataset.published(self.dataset, self.revision, "the source's `folder`")
        except InputError as error:
            gated = "gated" in error.problem
            raise InputError(self._place, error.problem, error.remedy if gated else self._remedy()) from None
        patterns = (f"{self.subset}/{self.split}-*.parquet", f"{self.subset}/{self.split}/*.parquet")
        shards = [file for file in commit.files if any(fnmatch(file.name, pattern) for pattern in patterns)]
        if not shards:
            remedy = "Correct `subset` and `split`; or try `revision: refs/convert/parquet`, the hub's own conversion."
            raise InputError(self._place, f"no {' or '.join(patterns)} at {commit.commit}", remedy)
        return commit, sorted(shards, key=lambda file: file.name)

    def _remedy(self) -> str:
        return (
            f"On a machine with a network, run: hf download --repo-type dataset {self.dataset} --include "
            f"'{self.subset}/{self.split}-*' --local-dir DIR; copy DIR here and set the source's folder: DIR."
        )

    def _text(self, row: Any, path: list[str]) -> str:
        for name in path:
            if not isinstance(row, dict) or name not in row:
                raise InputError(
                    f"data set {self.dataset} ({self.subset})",
                    f"no column {'.'.join(path)}",
                    "Name the column of each language in the source's columns.",
                )
            row = row[name]
        return str(row)


def _rows_of(table: pyarrow.parquet.ParquetFile) -> Iterator[dict[str, Any]]:
    for group in range(table.num_row_groups):  # one by one: over all of them, the reader's memory grows
        for batch in table.iter_batches(_ROWS, row_groups=[group], use_threads=False):
            yield from batch.to_pylist()
