"""One model for every table of the paper, and its Markdown and CSV; :mod:`latex` and :mod:`html` write the rest.

Texts of a table are plain Unicode; each writer escapes them for its format.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from entropy_valley import files
from entropy_valley.plain_text import guarded, shown

# Backslash, column, emphasis, code, formula, HTML, entity, link: only where they would be more than the character.
_MARKS = re.compile(r"[\\|*`$]|(?<!\w)_|_(?!\w)|~(?=~)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|\](?=[(\[:])")


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


def write_csv(path: Path, tidy: pd.DataFrame) -> None:
    """Write a tidy frame with ten significant digits; what is not available is empty, and no text is a formula."""
    texts = {name: tidy[name] for name in tidy.select_dtypes("object")}
    safe = {name: pd.Series(map(_safe, column), column.index, object) for name, column in texts.items()}
    files.write_text(path, tidy.assign(**safe).to_csv(index=False, float_format="%.10g"))


def _safe(value: object) -> object:
    """A value of a CSV file: a text that is no number is guarded; its lines end with LF, as those of the file."""
    if not isinstance(value, str) or re.fullmatch(r"[+-][\d.,]+%?", value):
        return value
    return re.sub(r"\r\n?", "\n", guarded(value))


def to_markdown(table: Table) -> str:
    """A GitHub table, a heading in a row of its own, then the footnote."""
    titles = [_markdown(f"{column.over} {column.title}".strip()) for column in table.columns]
    rules = [{"l": ":--", "c": ":-:", "r": "--:"}[column.align] for column in table.columns]
    rows = [row for section in table.sections for row in _markdown_section(section, len(table.columns))]
    notes = [_paragraph(note.text) + (f" {_code(note.signature)}" if note.signature else "") for note in table.notes]
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
    """The text on one line; what Markdown would read as a mark, a link, HTML or a formula stays text."""
    return _MARKS.sub(r"\\\g<0>", shown(text))


def _paragraph(text: str) -> str:
    """The text as a paragraph: no heading, quotation or list, whatever it begins with."""
    return re.sub(r"^(\d*)([#>+=-]|[.)](?= |$))", r"\1\\\2", _markdown(text).strip())


def _code(text: str) -> str:
    """The text as code, between more backticks than it has."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    blank = " " * (text[:1] == "`" or text[-1:] == "`")
    return f"{fence}{blank}{shown(text)}{blank}{fence}"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
