"""Takes in the filled forms of a pack: each cell is checked, and every problem is listed with its cell."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from openpyxl.utils import get_column_letter

from entropy_valley.errors import InputError
from entropy_valley.human_evaluation import forms, tables
from entropy_valley.human_evaluation.forms import CHOICES, COLUMNS, GRADES, NOTES, PREFERENCE, RATINGS, TEXTS
from entropy_valley.human_evaluation.pack import Pack


@dataclass(frozen=True)
class Rating:
    """One row of a filled form: adequacy and fluency of each slot, 1 to 5, and the preferred slot or ``tie``."""

    annotator: str
    id: str
    adequacy: Mapping[str, int]  # by slot: a, b
    fluency: Mapping[str, int]
    preference: str  # a, b or tie
    notes: str


@dataclass(frozen=True)
class Problem:
    """What is wrong in a cell: ``place`` is the file and, where there is one, the cell."""

    place: str
    text: str


def read_forms(paths: Sequence[Path], pack: Pack, annotators: Sequence[str]) -> dict[str, list[Rating]]:
    """The ratings of each form by its annotator, in the order of the pack; rows that are not rated are left out.

    A file is named by its direction and its annotator: ``en-zh.A.xlsx``. Raises one :class:`InputError` that lists all
    problems of all forms.
    """
    problems, found = list(_names(paths, pack, annotators)), {}
    for path in paths:
        try:
            table = tables.read(path, [row.source for row in pack.rows])
        except InputError as error:
            problems.append(Problem(error.place, f"{error.problem}. {error.remedy}"))
            continue
        found[annotator_of(path, pack)], wrong = check(path, table, pack)
        problems += wrong
    if problems:
        listed = "".join(f"\n  {problem.place}: {problem.text}" for problem in problems)
        what = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'} in filled forms"
        raise InputError(f"pack {pack.code}", f"{what}:{listed}\n", "Correct these cells, and run it again.")
    return {annotator: found[annotator] for annotator in annotators if annotator in found}


def annotator_of(path: Path, pack: Pack) -> str:
    """Whose form a file is, by its name."""
    return path.stem.removeprefix(f"{pack.direction}.")


def _names(paths: Sequence[Path], pack: Pack, annotators: Sequence[str]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path in paths:
        name = annotator_of(path, pack)
        if name not in annotators:
            yield Problem(str(path), f"is named after no annotator; there are {', '.join(annotators)}")
        elif first.setdefault(name, path) != path:
            yield Problem(str(path), f"is a second form of {name}, beside {first[name].name}; keep one")


def check(path: Path, table: tables.Table, pack: Pack) -> tuple[list[Rating], list[Problem]]:
    """The ratings of a form and its problems; cells are named as spreadsheet programs name them: ``A.csv:F12``."""
    problems, annotator = [], annotator_of(path, pack)
    if table.annotator not in (None, annotator):
        problems.append(Problem(str(path), f"is the form of {table.annotator}, by its sheet Pack"))
    header = [_plain(name) for name in table.rows[0]]
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        return [], [*problems, Problem(str(path), f"has no column {', '.join(missing)}")]
    reader = _Reader(path, pack, {name: header.index(name) for name in COLUMNS})
    for number, row in enumerate(table.rows[1:], 2):
        if any(cell.strip() for cell in row):
            reader.read(number, [*row, *[""] * (len(header) - len(row))])
    lost = [row.id for row in pack.rows if row.id not in reader.seen]
    if lost:
        reader.problems.append(Problem(str(path), f"has no row {', '.join(lost)}; leave rows empty to skip them"))
    order = {row.id: place for place, row in enumerate(pack.rows)}
    return sorted(reader.ratings, key=lambda rating: order[rating.id]), [*problems, *reader.problems]


class _Reader:
    """Reads the rows of one form; ``columns`` has the place of each."""

    def __init__(self, path: Path, pack: Pack, columns: Mapping[str, int]) -> None:
        self.path, self.pack, self.columns, self.annotator = path, pack, columns, annotator_of(path, pack)
        self.shown = {row.id: forms.texts(row) for row in pack.rows}
        self.seen: set[str] = set()
        self.ratings: list[Rating] = []
        self.problems: list[Problem] = []

    def read(self, number: int, row: Sequence[str]) -> None:
        cells = {name: row[place] for name, place in self.columns.items()}
        name = _plain(cells["ID"])
        if trouble := self._id(name):
            return self._problem("ID", number, trouble)
        self.seen.add(name)
        for column, text in zip(TEXTS[1:], self.shown[name][1:], strict=True):
            if _same_text(cells[column]) != _same_text(text):
                self._problem(column, number, "was changed; the rating may be of another text")
        given = {column: _plain(cells[column]) for column in (*RATINGS, PREFERENCE)}
        if any(given.values()):
            self._rate(number, name, given, cells[NOTES].strip())

    def _id(self, name: str) -> str | None:
        if name in self.seen:
            return f"{name} comes twice"
        if name in self.shown:
            return None
        code = name.partition("-")[0]
        return f"{name} is of pack {code}, not of {self.pack.code}" if code != self.pack.code else f"no row is {name!r}"

    def _rate(self, number: int, name: str, given: Mapping[str, str], notes: str) -> None:
        choices = {choice.casefold(): choice for choice in CHOICES}
        wrong = [
            (column, f"is {value!r}; {', '.join(allowed)} are possible" if value else "is empty, and the row is rated")
            for column, value in given.items()
            for allowed in [CHOICES if column == PREFERENCE else GRADES]
            if value.casefold() not in {one.casefold() for one in allowed}
        ]
        for column, text in wrong:
            self._problem(column, number, text)
        if not wrong:
            adequacy_a, fluency_a, adequacy_b, fluency_b = (int(given[column]) for column in RATINGS)
            adequacy, fluency = {"a": adequacy_a, "b": adequacy_b}, {"a": fluency_a, "b": fluency_b}
            preference = choices[given[PREFERENCE].casefold()].lower()
            self.ratings.append(Rating(self.annotator, name, adequacy, fluency, preference, notes))

    def _problem(self, column: str, number: int, text: str) -> None:
        letter = get_column_letter(self.columns[column] + 1)
        self.problems.append(Problem(f"{self.path}:{letter}{number}", f"{column} {text}"))


def _plain(text: str) -> str:
    """A cell without spaces around it and with full-width characters as ASCII: ``４`` is 4, and ``4.0`` is, too."""
    plain = unicodedata.normalize("NFKC", text).strip()
    return plain.removesuffix(".0")


def _same_text(text: str) -> str:
    """A text up to what programs change in saving it: composed characters and spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())
