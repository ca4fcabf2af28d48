"""Streaming a parallel data set from the Hugging Face hub, or from a local copy of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entropy_valley.corpus.sampling import Pair
from entropy_valley.errors import InputError


@dataclass(frozen=True)
class HuggingFace:
    """``dataset`` and ``subset`` as the hub names them (``wmt/wmt19``, ``zh-en``), and one ``split`` of it.

    ``columns`` maps a language to the column of its text, dots entering a nested record; by default
    ``translation.{language}``, the layout of the WMT sets. ``folder`` is a local copy of the data set's
    repository, read instead of the hub: its ``{subset}/{split}-*.parquet``. ``revision`` pins the hub's version.
    """

    dataset: str
    subset: str
    split: str = "train"
    columns: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None
    revision: str | None = None

    splits = False
    endless = False

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """Every pair of the data set in its order; both sides stripped of outer blanks."""
        source, target = (self.columns.get(one, f"translation.{one}").split(".") for one in direction.split("-"))
        for row in self._rows():
            yield self._text(row, source), self._text(row, target)

    def _rows(self) -> Iterator[dict[str, Any]]:
        from datasets import load_dataset

        try:
            # Plain dicts: the arrow formats of a stream abort when the interpreter exits.
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
            f"Where there is a network, run: hf download --repo-type dataset {self.dataset} --include "
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
        return str(row).strip()
