"""One model for every table of the paper, and its LaTeX, Markdown and CSV.

Texts of a table are plain Unicode; each writer escapes them for its format.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import files
from entropy_valley.late import pandas as pd
from entropy_valley.reporting.latex_tables import to_latex


@dataclass(frozen=True)
class Column:
    """A column: its title, the title it shares with its neighbours, and its alignment (l, c or r)."""

    title: str
    over: str = ""
    align: str = "c"


@dataclass(frozen=True)
class Cell:
    """What one row says in one column."""

    text: str
    bold: bool = False
    shaded: bool = False


@dataclass(frozen=True)
class Row:
    """The cells behind the group's label; ``shaded`` paints the whole row."""

    cells: tuple[Cell, ...]
    shaded: bool = False


@dataclass(frozen=True)
class Group:
    """Rows between two rules that share the label in the first column."""

    label: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Section:
    """Groups under a heading that spans the table; no heading, no row for it."""

    groups: tuple[Group, ...]
    heading: str = ""


@dataclass(frozen=True)
class Note:
    """A line of the footnote; ``signature`` is set in typewriter type behind the text."""

    text: str
    signature: str = ""


@dataclass(frozen=True)
class Table:
    """Columns (the first holds the groups' labels), sections and footnote."""

    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    notes: tuple[Note, ...] = ()


def write(table: Table, tidy: pd.DataFrame, *, tex: Path, csv: Path, md: Path) -> None:
    """Write a table's three files, each whole; ``tidy`` are the numbers behind it."""
    files.write_text(tex, to_latex(table))
    files.write_text(md, to_markdown(table))
    write_csv(csv, tidy)


def write_csv(path: Path, tidy: pd.DataFrame) -> None:
    """Write a tidy frame with ten significant digits; what is not available is empty."""
    files.write_text(path, tidy.to_csv(index=False, float_format="%.10g"))


def to_markdown(table: Table) -> str:
    """A GitHub table, a heading in a row of its own, then the footnote."""
    titles = [_markdown(f"{column.over} {column.title}".strip()) for column in table.columns]
    rules = [{"l": ":--", "c": ":-:", "r": "--:"}[column.align] for column in table.columns]
    rows = [row for section in table.sections for row in _markdown_section(section, len(table.columns))]
    notes = [f"{_markdown(note.text)}{f' `{note.signature}`' if note.signature else ''}" for note in table.notes]
    return "\n".join([_markdown_row(titles), _markdown_row(rules), *rows]) + "\n\n" + "\n\n".join(notes) + "\n"


def _markdown_section(section: Section, width: int) -> list[str]:
    heading = [_markdown_row([f"**{_markdown(section.heading)}**", *[""] * (width - 1)])] if section.heading else []
    rows = [
        _markdown_row([_markdown(group.label) if first else "", *map(_markdown_cell, row.cells)])
        for group in section.groups
        for first, row in zip(itertools.chain([True], itertools.repeat(False)), group.rows, strict=False)
    ]
    return heading + rows


def _markdown_cell(cell: Cell) -> str:
    return f"**{_markdown(cell.text)}**" if cell.bold else _markdown(cell.text)


def _markdown(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
