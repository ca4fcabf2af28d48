"""A finished table on the terminal."""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.texts import shown

WIDEST = 1000  # characters of a line in a log


def show(path: str | Path) -> None:
    """Print a ``.md`` or ``.csv`` table as a rich table, the footnote of a ``.md`` below it."""
    lines = files.read_lines(path)
    rows, notes = ([*csv.reader(lines)], []) if Path(path).suffix == ".csv" else _markdown(lines)
    if not rows or {len(row) for row in rows} != {len(rows[0]) or 1}:
        raise InputError(path, "is no table of results", "Name a .md or .csv of results/tables.")
    print_table(rows[0], rows[1:], notes)


def print_table(header: list[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
    """Print rows, and notes below. Where some rows leave their first cell empty, the others begin a section each."""
    sections = not all(row[0] for row in rows)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0, header_style="bold")
    for title in _folded(list(map(shown, header)), rows):
        table.add_column(Text(title))
    for row in rows:
        if row[0] and sections:
            table.add_section()
        table.add_row(*(Text(shown(text.replace("**", "")), "bold" if text.startswith("**") else "") for text in row))
    console = Console()
    if not console.is_terminal:  # a log has no right edge
        console.width = max(console.width, Console(width=WIDEST).measure(table).maximum)
    console.print(table)
    console.print()
    for note in notes:
        console.print(Text(shown(_plain(note).replace("`", "")), "dim"))


def _folded(header: list[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The titles in lines as wide as their columns, so that numbers have the room."""
    columns = zip(header, *rows, strict=True)
    return [
        textwrap.fill(title, max([9, *(len(text.replace("**", "")) for text in column)])) for title, *column in columns
    ]


def _markdown(lines: list[str]) -> tuple[list[list[str]], list[str]]:
    """Rows and footnote of a file by :func:`tables.to_markdown`; the row of dashes is left out."""
    rows = [
        [_plain(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")
    ]
    return [*rows[:1], *rows[2:]], [line for line in lines if line and not line.startswith("|")]


def _plain(text: str) -> str:
    """A text of Markdown without its backslashes."""
    return re.sub(r"\\(.)", r"\1", text)
