"""Takes in the filled forms of a pack: each cell is checked, every problem is listed with its cell, and what annotators
said of slots becomes ratings of systems.

Forms come back from Excel, LibreOffice and the page for annotators; all cells are read as text.
"""

import csv
import io
import itertools
import re
import unicodedata
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.worksheet import Worksheet

from entropy_valley import files
from entropy_valley.errors import InputError, brief
from entropy_valley.experiment.human_evaluation import forms
from entropy_valley.experiment.human_evaluation.forms import (
    CHOICES,
    COLUMNS,
    GRADES,
    NOTES,
    PREFERENCE,
    RATINGS,
    SHEET,
    TEXTS,
)
from entropy_valley.experiment.human_evaluation.pack import SCALES, Behind, Pack, read_mapping
from entropy_valley.texts import counted, unguarded

_SEPARATOR = re.compile(r'\s*"?ID"?\s*([,;\t])')  # in the header
LARGEST = 2**23  # bytes of a form, packed or not
WIDEST, LONGEST = 100, 10_000  # columns and rows of it that are read: an empty cell may be far from the others
_NO_FORM = "Open it in a spreadsheet program, and save it as .xlsx or as CSV UTF-8."


@dataclass(frozen=True)
class Rating:
    """One row of a filled form: adequacy and fluency of each slot, 1 to 5, and the preferred slot or ``tie``."""

    annotator: str
    id: str
    scores: Mapping[str, Mapping[str, int]]  # by slot, a or b: adequacy and fluency
    preference: str  # a, b or tie
    notes: str


def write_ratings(
    params: Mapping[str, Any], folder: str, pack_file: str, mapping_file: str, paths: Sequence[str], out: str
) -> None:
    """Check filled forms, and write what they say of the systems; ``folder`` is where users put them.

    ``params`` are those of the rule, ``paths`` the forms. Raises InputError where there is no form or no rating, and as
    :func:`read_forms`.
    """
    pack = Pack.read(pack_file)
    if not paths:
        form = f"{pack.direction}.A.xlsx"
        remedy = f"Make the forms by `snakemake packs`, have them filled in, and put them there: {form}."
        raise InputError(folder, f"has no filled form of {pack.direction}", remedy)
    ratings = read_forms(list(map(Path, paths)), pack, params["annotators"])
    if not any(ratings.values()):
        problem = f"no row is rated in the forms of {pack.direction}"
        raise InputError(folder, problem, "Put them there when they are filled in.")
    behind = read_mapping(mapping_file)
    files.write_jsonl(out, [row for given in ratings.values() for row in unblinded(given, behind)])


def read_forms(paths: Sequence[Path], pack: Pack, annotators: Sequence[str]) -> dict[str, list[Rating]]:
    """The ratings of each form by its annotator, in the order of the pack; rows that are not rated are left out.

    A file is named by its direction and its annotator: ``en-zh.A.xlsx``. Raises one :class:`InputError` that lists all
    problems of all forms.
    """
    problems = []
    ratings: dict[str, list[Rating]] = {}
    first: dict[str, Path] = {}
    for path in paths:
        name = path.stem.removeprefix(f"{pack.direction}.")
        if name not in annotators:
            problems.append(f"{path}: is named after no annotator; there are {', '.join(annotators)}")
        elif first.setdefault(name, path) != path:
            problems.append(f"{path}: is a second form of {name}, beside {first[name].name}; keep one")
        try:
            ratings[name], found = _read_form(path, name, pack)
        except InputError as error:
            found = [f"{error.place}: {error.problem}. {error.remedy}"]
        problems += found
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        what = f"{counted(len(problems), 'problem')} in filled forms:{listed}\n"
        raise InputError(f"pack {pack.code}", what, "Correct these cells, and run it again.")
    return {annotator: ratings[annotator] for annotator in annotators if annotator in ratings}


def _read_form(path: Path, annotator: str, pack: Pack) -> tuple[list[Rating], list[str]]:
    """What is rated in a form, in the order of the pack; and its problems. Cells have the names of spreadsheet
    programs: ``A.csv:F12``. Raises :class:`InputError` for a file that is neither a spreadsheet nor CSV, or larger than
    a form."""
    files.regular(path, LARGEST)
    rows, named = _read_xlsx(path) if path.suffix.lower() == ".xlsx" else (_read_csv(path), "")
    problems = []
    if named and named != annotator:
        problems.append(f"{path}: is the form of {brief(named)}, by its sheet {forms.ABOUT}")
    header = [_plain(name) for name in rows[0]] if rows else []
    if wrong := [name for name in COLUMNS if header.count(name) != 1]:
        return [], [*problems, f"{path}: needs one column each of {', '.join(wrong)}"]
    shown = {row.id: dict(zip(TEXTS, forms.texts(row), strict=True)) for row in pack.rows}
    ratings: dict[str, Rating | None] = {}
    for number, row in enumerate(rows[1:], 2):
        if any(cell.strip() for cell in row):
            # A row may end before its empty cells.
            cells = dict(itertools.zip_longest(header, row, fillvalue=""))
            name = _plain(cells["ID"])
            if name in ratings or name not in shown:
                what = "comes twice" if name in ratings else f"is no row of pack {pack.code}"
                found = [("ID", f"{brief(name)} {what}")]
            else:
                ratings[name], found = _read_row(annotator, name, cells, shown[name])
            for column, problem in found:
                letter = get_column_letter(header.index(column) + 1)
                problems.append(f"{path}:{letter}{number}: {column} {problem}")
    if lost := [name for name in shown if name not in ratings]:
        problems.append(f"{path}: has no row {', '.join(lost)}; leave rows empty to skip them")
    return [rating for name in shown if (rating := ratings.get(name))], problems


def _read_row(
    annotator: str, name: str, cells: Mapping[str, str], shown: Mapping[str, str]
) -> tuple[Rating | None, list[tuple[str, str]]]:
    """The rating of a row, None where it has none or an impossible one; and its problems, each behind its column."""
    problems = []
    for column in TEXTS[1:]:
        if _same_text(cells[column]) != _same_text(shown[column]):
            problems.append((column, "was changed; the rating may be of another text"))
    # A spreadsheet may write 4 as 4.0, and people tie for Tie.
    given = {column: _plain(cells[column]).casefold() for column in (*RATINGS, PREFERENCE)}
    if not any(given.values()):
        return None, problems
    impossible = []
    for column, value in given.items():
        allowed = CHOICES if column == PREFERENCE else GRADES
        if not value:
            impossible.append((column, "is empty, and the row is rated"))
        elif value not in [one.casefold() for one in allowed]:
            text = brief(repr(_plain(cells[column])))
            impossible.append((column, f"is {text}; {', '.join(allowed)} are possible"))
    if impossible:
        return None, [*problems, *impossible]
    grades = iter([int(given[column]) for column in RATINGS])
    scores = {slot: {scale: next(grades) for scale in SCALES} for slot in "ab"}
    return Rating(annotator, name, scores, given[PREFERENCE], cells[NOTES].strip()), problems


def _plain(text: str) -> str:
    """A cell without spaces around it and with compatible characters as ASCII: ``４``, ``④``, ``4.0`` and ``4,0`` are
    4."""
    return re.sub("[.,]0$", "", unicodedata.normalize("NFKC", text).strip())


def _same_text(text: str) -> str:
    """A text up to what programs change in saving it: composed characters and spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _read_xlsx(path: Path) -> tuple[list[list[str]], str]:
    """The cells of a form as text, and whom a spreadsheet says that it is for; "" if it says nothing."""
    with files.readable(path, "spreadsheet", _NO_FORM):
        with zipfile.ZipFile(path) as packed:
            parts = packed.infolist()
        # No part of the usual compressions unpacks to more than it says.
        if not {part.compress_type for part in parts} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise ValueError("it is compressed in a way that no spreadsheet is")
        if sum(part.file_size for part in parts) > LARGEST:
            raise InputError(path, f"unpacks to more than {LARGEST:,} bytes, the most of a form", _NO_FORM)
        book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
        sheets = {sheet.title: _cells(sheet) for sheet in book.worksheets}
        about = {row[0]: row[1] for row in sheets.get(forms.ABOUT, ()) if len(row) > 1}
        ratings = sheets.get(SHEET) or _cells(book.worksheets[0])
        return ratings, about.get("Annotator", "")


def _cells(sheet: Worksheet) -> list[list[str]]:
    """Values as texts. ``x005F_`` marks what looks like an escape of spreadsheets; openpyxl removes it from some texts,
    not from all."""
    sheet.reset_dimensions()  # what the file says of them may be wrong
    rows = sheet.iter_rows(max_row=LONGEST, max_col=WIDEST, values_only=True)
    return [["" if value is None else str(value).replace("x005F_", "") for value in row] for row in rows]


def _read_csv(path: Path) -> list[list[str]]:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(path, "is not UTF-8, so its texts cannot be compared", _NO_FORM) from None
    header = _SEPARATOR.match(text)
    if not header:
        raise InputError(path, "its first row does not begin with a column ID", _NO_FORM)
    with files.readable(path, "CSV file", f"Close all quotation marks. {_NO_FORM}"):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=header[1])
        return [[unguarded(cell) for cell in row[:WIDEST]] for row in itertools.islice(reader, LONGEST)]


def unblinded(ratings: Sequence[Rating], behind: Mapping[str, Behind]) -> list[dict[str, Any]]:
    """A row for each rating, as ``ratings.jsonl`` holds it.

    ``{annotator, id, testset_id, bucket, difference, first: {adequacy, fluency}, second: …, preference, notes}``, where
    ``preference`` is ``first``, ``second`` or ``tie``.
    """
    rows = []
    for rating in ratings:
        row = behind[rating.id]
        # Only here is a slot a system again.
        systems = {"a": row["a"], "b": row["b"], "tie": "tie"}
        scores = {systems[slot]: rating.scores[slot] for slot in "ab"}
        facts = {name: row[name] for name in ("id", "testset_id", "bucket", "difference")}
        own = {"preference": systems[rating.preference], "notes": rating.notes}
        rows.append({"annotator": rating.annotator, **facts, **dict(sorted(scores.items())), **own})
    return rows
