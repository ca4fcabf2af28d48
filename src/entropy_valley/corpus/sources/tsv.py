"""A file of tab-separated values with a pair in each line, for example an export of a spreadsheet or of Tatoeba."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, PositiveInt

from entropy_valley import files
from entropy_valley.corpus.sampling import Pair
from entropy_valley.corpus.sources.base import Source
from entropy_valley.errors import InputError


class Tsv(Source):
    """A file of the user's own with a pair in each line, between tabs. Quotation marks are part of the text."""

    name: Literal["tsv"] = Field(description="the kind of source")
    file: str = Field(description="the file, UTF-8")
    columns: dict[str, PositiveInt | str] = Field(
        description="by language the column: its number, from 1, or its name in the first line"
    )

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs, without leading and trailing blanks. Raises InputError for a missing column and a blank text."""
        if problem := self.refused(direction):
            raise InputError(f"source {self.file}", problem, "Or name another source.")
        rows = [line.split("\t") for line in files.read_lines(self.file)]
        wanted = [self.columns[language] for language in direction.split("-")]
        named = any(isinstance(column, str) for column in wanted)
        places = [self._place(column, rows[0]) for column in wanted]
        return (self._pair(rows[at], at + 1, places) for at in range(named, len(rows)))

    def own_files(self, direction: str, *splits: str) -> list[str]:
        return [self.file]

    def refused(self, direction: str, *splits: str) -> str | None:
        missing = [language for language in direction.split("-") if language not in self.columns]
        return f"has no column of {' and '.join(missing)}; name it under `columns`" if missing else None

    def _place(self, column: int | str, header: list[str]) -> int:
        if isinstance(column, int):
            return column - 1
        if column not in header:
            raise InputError(f"{self.file}:1", f"no column {column!r}", f"It has {', '.join(header)}.")
        return header.index(column)

    def _pair(self, row: list[str], number: int, places: list[int]) -> Pair:
        texts = [row[place].strip() if place < len(row) else "" for place in places]
        for place, text in zip(places, texts, strict=True):
            if not text:
                problem = f"no text in column {place + 1}"
                raise InputError(f"{self.file}:{number}", problem, "Fill it, or remove the line.")
        return texts[0], texts[1]
