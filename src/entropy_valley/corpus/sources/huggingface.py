"""A parallel data set of the Hugging Face hub, or a local copy of its files, read as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from entropy_valley.corpus.sampling import Pair
from entropy_valley.corpus.sources.base import Source
from entropy_valley.errors import InputError


class HuggingFace(Source):
    """A translation data set of the Hugging Face hub."""

    reversible: ClassVar[bool] = True

    name: Literal["huggingface"] = Field(description="the kind of source")
    dataset: str = Field(description="its name on the hub, like wmt/wmt19")
    subset: str = Field(description="its configuration there, like zh-en")
    split: str = Field("train", description="its split there")
    columns: dict[str, str] = Field(
        {},
        description="column of each language; dots for nested ones; default: translation.LANGUAGE, as in the WMT sets",
    )
    revision: str | None = Field(None, description="a commit or tag of the data set; null: the newest")
    folder: str | None = Field(
        None, description="a local copy of the repository, read instead: its SUBSET/SPLIT-*.parquet"
    )

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the data set, without leading and trailing blanks."""
        return ((one.strip(), other.strip()) for one, other in self.unstripped(direction, split, seed))

    def unstripped(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the data set, as they are."""
        source, target = (self.columns.get(one, f"translation.{one}").split(".") for one in direction.split("-"))
        for row in self._rows():
            yield self._text(row, source), self._text(row, target)

    def _rows(self) -> Iterator[dict[str, Any]]:
        from datasets import load_dataset  # takes a second, and only this stage has it

        try:
            # Rows as plain dicts: streams in Arrow formats crash when the interpreter exits.
            if self.folder:
                yield from load_dataset("parquet", data_files=self._shards(), split="train", streaming=True)
            else:
                yield from load_dataset(
                    self.dataset, self.subset, split=self.split, streaming=True, revision=self.revision
                )
        except (OSError, ValueError) as error:
            raise InputError(
                f"data set {self.dataset} ({self.subset}, {self.split})",
                f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
                self._remedy(),
            ) from None

    def _shards(self) -> list[str]:
        shards = sorted(str(path) for path in Path(self.folder, self.subset).glob(f"{self.split}-*.parquet"))
        if not shards:
            raise InputError(Path(self.folder, self.subset), f"no {self.split}-*.parquet", self._remedy())
        return shards

    def _remedy(self) -> str:
        return (
            f"On a machine with a network, run: hf download --repo-type dataset {self.dataset} --include "
            f"'{self.subset}/*' --local-dir DIR; copy DIR here and set the source's folder: DIR."
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
