"""A finished table on the terminal."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Iterator
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
        page = [line for part in _fitting(map(shown, lines), console.width) for line in part]
        console.print(Markdown("\n".join(page), hyperlinks=False))


def _fitting(lines: Iterable[str], width: int) -> Iterator[list[str]]:
    """The lines of a page. A table that is too wide becomes several, each with the first columns, which hold names."""
    for is_table, some in itertools.groupby(lines, lambda line: line.startswith("|")):
        if not is_table:
            yield list(some)
            continue
        columns = list(zip(*(re.split(r"(?<!\\)\|", line)[1:-1] for line in some), strict=True))
        names = list(itertools.takewhile(lambda column: column[1].strip() == ":--", columns))
        part = list(names)
        for column in columns[len(names) :]:
            if len(part) > len(names) and sum(map(_width, [*part, column])) > width:
                yield _lines(part)
                part = list(names)
            part.append(column)
        yield _lines(part)


def _lines(columns: list[tuple[str, ...]]) -> list[str]:
    return [*(f"|{'|'.join(row)}|" for row in zip(*columns, strict=True)), ""]


def _width(column: tuple[str, ...]) -> int:
    """Characters that a column takes where its title alone is broken, between words."""
    title, _, *cells = (text.strip(" *") for text in column)
    return 3 + max(map(len, [*title.split(), *cells]), default=0)


def _table(path: str | Path, rows: list[list[str]]) -> Table:
    if not rows or {len(row) for row in rows} != {len(rows[0]) or 1}:
        raise InputError(path, "is no table of results", "Name a .md or .csv of results/tables.")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold")
    for title in rows[0]:
        table.add_column(Text(shown(title)))
    for row in rows[1:]:
        table.add_row(*(Text(shown(text)) for text in row))
    return table
