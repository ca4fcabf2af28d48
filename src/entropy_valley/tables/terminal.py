"""A finished table on the terminal."""

from __future__ import annotations

import csv
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.texts import shown

LOG = 160  # characters of a line in a log, which has no right edge


def show(path: str | Path) -> None:
    """Print a ``.csv`` as a table, and anything else as Markdown."""
    lines = files.read_lines(path)
    console = Console()
    if not console.is_terminal:
        console.width = LOG
    if Path(path).suffix == ".csv":
        console.print(_table(path, [*csv.reader(lines)]))
    else:
        console.print(Markdown("\n".join(map(shown, lines)), hyperlinks=False))


def _table(path: str | Path, rows: list[list[str]]) -> Table:
    if not rows or {len(row) for row in rows} != {len(rows[0]) or 1}:
        raise InputError(path, "is no table of results", "Name a .md or .csv of results/tables.")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold")
    for title in rows[0]:
        table.add_column(Text(shown(title)))
    for row in rows[1:]:
        table.add_row(*(Text(shown(text)) for text in row))
    return table
