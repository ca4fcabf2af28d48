"""The WMT22 general test set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from entropy_valley import files
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import Source, reverse
from entropy_valley.data.sources.files import read_parallel
from entropy_valley.errors import InputError

SENTENCES = {"en-zh": 2037, "en-de": 2037}


class Wmt22(Source):
    """The WMT22 general test set with reference A, through sacreBLEU or from a folder.

    Zh→En is En→Zh with source and reference exchanged, not WMT22's own Zh→En set.
    """

    name: Literal["wmt22"] = Field(description="the kind of source")
    folder: str | None = Field(
        None, description="holds generaltest2022.en-zh.src.en, generaltest2022.en-zh.ref.A.zh and the like"
    )

    @property
    def size(self) -> int:
        return max(SENTENCES.values())

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All 2037 pairs in the order of the file."""
        pair = _pair(direction)
        rows = read_parallel(*self._paths(pair))
        if len(rows) != SENTENCES[pair]:
            raise InputError(
                f"test set wmt22: {pair}",
                f"{len(rows)} lines instead of {SENTENCES[pair]}",
                f"An incomplete copy: delete {self.folder or self._cache()} and run again.",
            )
        return iter(rows if pair == direction else [(target, source) for source, target in rows])

    def origin(self, direction: str, *splits: str) -> dict[str, Any]:
        return {"files": files.digests(self._paths(_pair(direction)))}

    def _paths(self, pair: str) -> tuple[Path, Path]:
        source, target = pair.split("-")
        if self.folder:
            stem = f"generaltest2022.{pair}"
            return Path(self.folder, f"{stem}.src.{source}"), Path(self.folder, f"{stem}.ref.A.{target}")
        from sacrebleu.utils import get_reference_files, get_source_file  # not where the config alone is read

        try:
            return Path(get_source_file("wmt22", pair)), Path(get_reference_files("wmt22", pair)[0])
        except (OSError, EOFError, ValueError) as error:
            raise InputError(
                f"test set wmt22: {pair}",
                f"sacreBLEU cannot provide it ({error})",
                f"On a machine with a network, run: sacrebleu -t wmt22 -l {pair} --echo src; copy {self._cache()}"
                " here, or set the test set's folder to one with generaltest2022.* files.",
            ) from None

    @staticmethod
    def _cache() -> Path:
        from sacrebleu.utils import SACREBLEU_DIR

        return Path(SACREBLEU_DIR, "wmt22")


def _pair(direction: str) -> str:
    """The direction of the files: this one, or its reverse."""
    pair = direction if direction in SENTENCES else reverse(direction)
    if pair not in SENTENCES:
        raise InputError(
            f"test set wmt22: {direction}",
            "no reference A for this direction",
            f"Use one of {', '.join(SENTENCES)} or the reverse, or another test set.",
        )
    return pair
