"""A user's own files: two text files, tab-separated values, or JSON Lines."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt, field_validator

from entropy_valley import files
from entropy_valley.data.dataset import HubFiles, present, require_as_downloaded
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import KIND, Source, reverse, text_at
from entropy_valley.errors import InputError, listed, note, unknown
from entropy_valley.settings import Commit, Direction, JsonObject, Language, Repository, unique
from entropy_valley.texts import checked_sentence, counted, visible

# --- Two text files with one sentence per line: a user's own corpus, and the layout of most test sets.


class Files(Source):
    """Two text files of the user's own, one sentence per line."""

    name: Literal["files"] = KIND
    source: str = Field(description="the file of source sentences, UTF-8")
    target: str = Field(description="the file of target sentences; line n translates line n of the other file")

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        return iter(read_parallel(self.source, self.target))

    def own_files(self, direction: str, *splits: str) -> list[str]:
        return [self.source, self.target]


def read_parallel(source: str | Path, reference: str | Path) -> list[Pair]:
    """The pairs of two files.

    Raises InputError for an empty file, a line that is not a sentence, files of unequal length, and equal ones.
    """
    sources, references = _sentences(source), _sentences(reference)
    if len(sources) != len(references):
        problem = f"{len(references)} lines, but {source} has {len(sources)}"
        raise InputError(reference, problem, "Line n of one file must translate line n of the other.")
    if sources == references:
        raise InputError(reference, f"has the sentences of {source}", "Name a file of their translations.")
    return list(zip(sources, references, strict=True))


def _sentences(path: str | Path) -> list[str]:
    lines = files.read_lines(path)
    # Some sentences have a tab; a file in which most lines have one was meant for the source `tsv`.
    if 2 * sum("\t" in line for line in lines) > len(lines):
        raise InputError(path, "most of its lines have tabs: a table, not sentences", "Give a file for each side.")
    sentences = [checked_sentence(f"{path}:{number}", line) for number, line in enumerate(lines, 1)]
    # A blank line is no sentence, and without it all lines below would be paired wrongly: the user must say which.
    if blank := [str(number) for number, sentence in enumerate(sentences, 1) if not visible(sentence)]:
        many = f"{len(blank)} blank lines: {listed(blank)}"
        remedy = "Remove such lines from both files, or fill them."
        raise InputError(f"{path}:{blank[0]}", many if len(blank) > 1 else "blank line", remedy)
    return sentences


# --- A file of tab-separated values with a pair in each line, for example an export of a spreadsheet or of Tatoeba.


class Tsv(Source):
    """A file of the user's own with a pair in each line, between tabs."""

    by_language: ClassVar[str] = "columns"

    name: Literal["tsv"] = KIND
    file: str = Field(description="the file, UTF-8")
    columns: dict[Language, PositiveInt | str] = Field(
        description="by language the column: its number, from 1, or its name in the first line"
    )
    quoted: bool | None = Field(
        None,
        description="true: cells may be in quotation marks, as spreadsheets save them; false: quotation marks are part "
        "of the text; null: the same, but a file with such cells is refused",
    )
    blank: Literal["drop"] | None = Field(
        None, description="lines without a text on one side: drop leaves them out and counts them; null: refused"
    )

    @field_validator("columns")
    @classmethod
    def _are_distinct(cls, columns: dict[str, int | str]) -> dict[str, int | str]:
        unique(list(columns.values()))
        return columns

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs, without leading and trailing blanks. Raises InputError for a missing column, and at the first line
        that does not fit."""
        if problem := self.refused(direction):
            raise InputError(f"source {self.file}", problem, "Or name another source.")
        rows = self._rows()
        wanted = [self.columns[language] for language in direction.split("-")]
        header, places, named = rows[0][1], [], False
        for column in wanted:
            if isinstance(column, int):
                places.append(column - 1)
            elif (times := header.count(column)) == 1:
                places.append(header.index(column))
                named = True
            else:
                problem = unknown(column, f"{times} columns are called {column!r}", header, "between tabs are")
                raise InputError(f"{self.file}:1", problem, "Correct `columns` of this source in the config.")
        # The first line tells which ones have a tab too many.
        return (self._pair(number, row, places, len(header)) for number, row in rows[named:])

    def own_files(self, direction: str, *splits: str) -> list[str]:
        return [self.file]

    def _rows(self) -> list[tuple[int, list[str]]]:
        """The cells of each row, behind the number of its first line."""
        lines = files.read_lines(self.file)
        # Without quotation marks a line is a row. With them a cell may have line breaks, and a row many lines.
        if not self.quoted:
            return [(number, line.split("\t")) for number, line in enumerate(lines, 1)]
        reader = csv.reader((f"{line}\n" for line in lines), delimiter="\t", strict=True)
        rows, first = [], 1
        try:
            for row in reader:
                rows.append((first, row))
                first = reader.line_num + 1
        except csv.Error as error:
            remedy = "Correct its quotation marks, or set `quoted: false` of this source in the config."
            raise InputError(f"{self.file}:{first}", f"not a row of quoted cells ({error})", remedy) from None
        return rows

    def _pair(self, number: int, row: list[str], places: list[int], width: int) -> Pair:
        """The texts of a line; empty where it has no such column."""
        place = f"{self.file}:{number}"
        texts = [row[column].strip() if column < len(row) else "" for column in places]
        problem = ""
        if any(cell.strip() for cell in row[width:]):
            problem = f"more than {counted(width, 'column')} between tabs"
        elif self.quoted is None and any(map(_is_quoted, texts)):
            problem = "a cell in quotation marks: of a spreadsheet (`quoted: true`) or of the text (`quoted: false`)"
        elif not self.blank and not all(map(visible, texts)):
            sides = " or ".join(str(column + 1) for column in places)
            problem = f"no text in column {sides} (`blank: drop` leaves it out)"
        if problem:
            raise InputError(place, problem, "Correct the line, or the keys of this source in the config.")
        source, target = (checked_sentence(place, text) for text in texts)
        return source, target


def _is_quoted(text: str) -> bool:
    """Whether a cell is as spreadsheets save one with quotation marks: in such marks, and those inside doubled."""
    return len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('""', "")


# --- Files of pairs in JSON Lines, a key for each language: those that the paper's authors published, and their like.


Split = Annotated[str, Field(pattern="^(train|dev|test)$")]


class JsonLines(Source):
    """Files of a data set of the Hugging Face hub, or of a folder, with a pair in each line.

    Train and dev are the files as they are, or their first rows where `corpus.train` or `corpus.dev` is fewer. A
    direction without files takes those of its reverse, with their roles swapped.
    """

    AT_LEAST_ONE = ("dataset", "folder")
    given: ClassVar[bool] = True

    name: Literal["json_lines"] = KIND
    dataset: Repository | None = Field(None, description="its name on the hub, owner/name")
    revision: Commit | None = Field(None, description="null: the newest, which is written to the results")
    folder: str | None = Field(None, description="holds the files; then nothing is downloaded")
    files: dict[Direction, dict[Split, str]] = Field(
        description="by direction and split, such as {train: enzh_train.jsonl}"
    )
    rows: dict[Split, PositiveInt] = Field(
        {}, description="how many rows the file of each split must have; an incomplete copy is refused"
    )
    keys: dict[Language, str] = Field(
        {}, description="key of each language; dots for nested ones, as translation.en; default: its code, like en"
    )
    without: dict[str, bool | int | str] | None = Field(
        None,
        description="leaves out rows in which a key has this value, as {is_bad_source: true}; the log has their number",
    )

    @property
    def download(self) -> HubFiles | None:
        return HubFiles(self.dataset, self.revision, ["*.jsonl"]) if self.dataset and not self.folder else None

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs of a file, without leading and trailing blanks."""
        path = self._path(direction, split)
        require_as_downloaded(Path(self.folder or ""), path)
        keys = [self.keys.get(language, language) for language in direction.split("-")]
        unwanted = self.without or {}
        rows = files.read_jsonl(path, list(unwanted))
        if self.rows.get(split, len(rows)) != len(rows):
            problem = f"{len(rows)} rows instead of {self.rows[split]}"
            raise InputError(path, problem, "Get the whole file, or correct the source's `rows`.")
        kept = []  # with the line of the file, which errors name
        for number, row in enumerate(rows, 1):
            if all(row[key] != value for key, value in unwanted.items()):
                kept.append((number, row))
        if len(kept) < len(rows):
            note(f"{path}: {len(rows) - len(kept)} of {len(rows)} rows are left out")
        return (self._pair(path, number, row, keys) for number, row in kept)

    def settings(self, direction: str, *splits: str) -> JsonObject:
        """As of any source, but only the files of these splits."""
        named = {split: self._file(direction, split) for split in splits}
        rows = {split: number for split, number in self.rows.items() if split in splits}
        plain = super().settings(direction, *splits)
        return {**plain, "files": {self._pair_of_languages(direction): named}, "rows": rows}

    def own_files(self, direction: str, *splits: str) -> list[str]:
        return [] if self.download else [str(self._path(direction, split)) for split in splits]

    def refused(self, direction: str, *splits: str) -> str | None:
        missing = [split for split in splits if self._file(direction, split) is None]
        return f"has no {' and no '.join(missing)} file of {direction}; name it under `files`" if missing else None

    def _pair_of_languages(self, direction: str) -> str:
        return direction if direction in self.files else reverse(direction)

    def _file(self, direction: str, split: str) -> str | None:
        return self.files.get(self._pair_of_languages(direction), {}).get(split)

    def _path(self, direction: str, split: str) -> Path:
        place = f"data set {self.dataset or self.folder}"
        folder, name = present(self.folder, place), self._file(direction, split)
        if name is None:
            raise InputError(place, str(self.refused(direction, split)), "Or name another source.")
        return folder / name

    @staticmethod
    def _pair(path: Path, number: int, row: dict[str, Any], keys: list[str]) -> Pair:
        place = f"{path}:{number}"
        source, target = (checked_sentence(place, text_at(row, key, place)) for key in keys)
        return source, target
