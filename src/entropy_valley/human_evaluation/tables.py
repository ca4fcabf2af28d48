"""Reads the cells of a filled form, as text, from what Excel, LibreOffice and the page for annotators write."""

from __future__ import annotations

import codecs
import csv
import io
import re
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from entropy_valley.errors import InputError
from entropy_valley.human_evaluation.forms import SHEET
from entropy_valley.plain_text import unguarded

SUFFIXES = (".csv", ".xlsx")
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ENCODINGS = ("utf-8", "gb18030", "cp1252")  # without a mark: by how many of the expected texts it gives
_SEPARATOR = re.compile(r'\s*"?ID"?\s*([,;\t])')
_NO_FORM = "Open it in a spreadsheet program, and save it as .xlsx or as CSV."


@dataclass(frozen=True)
class Table:
    """``rows[0]`` is the header; ``annotator`` is whom a spreadsheet says that it is for; None if it says nothing."""

    rows: list[list[str]]
    annotator: str | None = None


def read(path: Path, expected: Collection[str]) -> Table:
    """The cells of a form as text; ``expected`` are texts that it should have, which tell its encoding.

    Raises :class:`InputError` for a file that is no spreadsheet and no CSV.
    """
    return _read_xlsx(path) if path.suffix.lower() == ".xlsx" else Table(_read_csv(path, expected))


def _read_xlsx(path: Path) -> Table:
    try:
        book = load_workbook(path, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, ParseError, EOFError) as error:
        raise InputError(path, f"is no spreadsheet that can be read ({error})", _NO_FORM) from None
    sheet = book[SHEET] if SHEET in book.sheetnames else book.worksheets[0]
    about = dict(row[:2] for row in book["Pack"].iter_rows(values_only=True)) if "Pack" in book.sheetnames else {}
    rows = [[_text(value) for value in row] for row in sheet.iter_rows(values_only=True)]
    return Table(rows or [[]], about.get("Annotator"))


def _text(value: Any) -> str:
    """A cell's value as its text; a number without a fraction goes without its point."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _read_csv(path: Path, expected: Collection[str]) -> list[list[str]]:
    text = _decoded(path, expected)
    if text.startswith("sep="):  # Excel's own first line
        text = text.partition("\n")[2]
    found = _SEPARATOR.match(text)
    if not found:
        raise InputError(path, "does not begin with a column ID", _NO_FORM)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=found[1])
    return [[unguarded(cell) for cell in row] for row in rows]


def _decoded(path: Path, expected: Collection[str]) -> str:
    content = path.read_bytes()
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, errors="replace").removeprefix("\ufeff")
    texts = [content.decode(encoding, errors="replace") for encoding in _ENCODINGS]
    return max(texts, key=lambda text: sum(one in text for one in expected))  # the first of equals
