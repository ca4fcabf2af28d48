"""A parallel data set of the Hugging Face hub, downloaded once, or a local copy of its files.

Its files are Parquet, SUBSET/SPLIT-*.parquet. pyarrow reads them a thousand rows at a time: tens of millions of rows
need no more memory than one million.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, PositiveInt

from entropy_valley import files, hub
from entropy_valley.data.dataset import HubFiles, present, require_as_downloaded
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import KIND, Source, text_at
from entropy_valley.errors import InputError
from entropy_valley.settings import JsonObject, Language, Repository

_ROWS = 1000  # at a time; row groups of the hub have as many


class HuggingFace(Source):
    """A translation data set of the Hugging Face hub."""

    slow: ClassVar[bool] = True

    name: Literal["huggingface"] = KIND
    dataset: Repository = Field(description="its name on the hub, like wmt/wmt19")
    subset: str = Field(description="the folder of its Parquet files there, such as zh-en or data")
    split: str = Field("train", description="its split there")
    rows: PositiveInt | None = Field(
        None, description="how many rows the split must have; another number is refused, null: not checked"
    )
    columns: dict[Language, str] = Field(
        {},
        description="column of each language; dots for nested ones; default: translation.LANGUAGE, as in the WMT sets",
    )
    revision: str | None = Field(
        None,
        description="a commit or tag of the data set, for example refs/convert/parquet, which has the files of any "
        "data set as Parquet; null: the newest commit, which is written to the results",
    )
    folder: str | None = Field(
        None, description="a local copy of the repository, read instead: its SUBSET/SPLIT-*.parquet"
    )

    @property
    def total(self) -> int | None:
        return self.rows

    def settings(self, direction: str, *splits: str) -> JsonObject:
        """As of any source, without the number of rows, which changes nothing of what is read."""
        return {key: value for key, value in super().settings(direction, *splits).items() if key != "rows"}

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the data set, without leading and trailing blanks."""
        return ((one.strip(), other.strip()) for one, other in self.unstripped(direction, split, seed))

    def unstripped(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the data set, as they are. Raises InputError behind the last one if it is not the
        number of rows that the config gives."""
        source, target = (self.columns.get(one, f"translation.{one}") for one in direction.split("-"))
        count = 0
        for row in self._rows():
            count += 1
            yield text_at(row, source, self._place), text_at(row, target, self._place)
        if self.rows not in (None, count):
            remedy = "Correct the source's `rows`, or name the commit that you mean as its `revision`."
            raise InputError(self._place, f"{count} rows instead of {self.rows}", remedy)

    @property
    def download(self) -> HubFiles | None:
        return None if self.folder else self._on_hub

    def own_files(self, direction: str, *splits: str) -> list[str]:
        return [str(path) for path in self._present(self.folder)] if self.folder else []

    @property
    def _on_hub(self) -> HubFiles:
        names = [f"{self.subset}/{self.split}-*.parquet", f"{self.subset}/{self.split}/*.parquet"]
        return HubFiles(self.dataset, self.revision, names, f"{self.subset} {self.split}")

    @property
    def _place(self) -> str:
        return f"data set {self.dataset} ({self.subset}, {self.split})"

    def _rows(self) -> Iterator[dict[str, Any]]:
        import pyarrow.parquet  # takes a moment, and only this stage has it

        with files.readable(self._place, "data set", self._remedy()):
            for path in self._shards():
                with pyarrow.parquet.ParquetFile(path) as table:
                    for group in range(table.num_row_groups):  # one by one: over all, the reader's memory grows
                        for batch in table.iter_batches(_ROWS, row_groups=[group], use_threads=False):
                            yield from batch.to_pylist()

    def _shards(self) -> list[Path]:
        """The files of the split; raises InputError if there are none, or others than were downloaded."""
        folder = present(self.folder, self._place)
        shards = self._present(folder)
        if not shards:
            raise InputError(folder, f"no {' or '.join(self._on_hub.patterns)}", self._remedy())
        for path in shards:
            require_as_downloaded(folder, path)
        return shards

    def _present(self, folder: str | Path) -> list[Path]:
        return sorted(path for pattern in self._on_hub.patterns for path in Path(folder).glob(pattern))

    def _remedy(self) -> str:
        command = hub.command(self.dataset, self.revision, "dataset", self._on_hub.patterns)
        return f"With a network run {command}, copy the folder, and set the source's `folder` to it."
