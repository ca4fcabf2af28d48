"""The former model of a table, until the last tables that use it are functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import pandas as pd

from entropy_valley.tables.show import Bold, Column, Row, Shown


@dataclass(frozen=True)
class TableCell:
    """What one row says in one column."""

    text: str
    bold: bool = False
    shaded: bool = False


@dataclass(frozen=True)
class TableRow:
    """The cells behind the group's label; ``shaded`` paints the whole row."""

    cells: Sequence[TableCell]
    shaded: bool = False

    @classmethod
    def of(cls, cells: Iterable[str | TableCell], shaded: bool = False) -> Self:
        """A row of cells; a text is a plain one."""
        return cls([TableCell(cell) if isinstance(cell, str) else cell for cell in cells], shaded)


@dataclass(frozen=True)
class Group:
    """Rows between two rules that share the label in the first column."""

    label: str
    rows: Sequence[TableRow]

    @classmethod
    def of(cls, label: str, cells: Iterable[str | TableCell], shaded: bool = False) -> Self:
        """A row by itself."""
        return cls(label, [TableRow.of(cells, shaded)])


@dataclass(frozen=True)
class TableSection:
    """Groups under a heading that spans the table; no heading, no row for it."""

    groups: Sequence[Group]
    heading: str = ""


@dataclass(frozen=True)
class Table:
    """Columns (the first holds the groups' labels), sections, and a footnote."""

    columns: Sequence[Column]
    sections: Sequence[TableSection]
    notes: Sequence[str] = ()
    signatures: Sequence[tuple[str, str]] = ()

    def shown(self) -> Shown:
        rows = []
        for section in self.sections:
            for number, group in enumerate(section.groups):
                for place, row in enumerate(group.rows):
                    texts = [Bold(cell.text) if cell.bold else cell.text for cell in row.cells]
                    rows.append(Row([group.label, *texts], section.heading, row.shaded, number == place == 0))
        labels = 2 if any(len(group.rows) > 1 for section in self.sections for group in section.groups) else 1
        return Shown(pd.DataFrame(), self.columns, rows, self.notes, labels, self.signatures)
