"""What a table shows: columns, rows of texts, and notes. How it is written, :mod:`render` says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from entropy_valley.tables.render import Column, Group, Table, TableCell, TableRow, TableSection


class Bold(str):
    """The text of a cell, in bold type."""


@dataclass(frozen=True)
class Row:
    """A text for each column. ``section`` stands above the first of the rows that share it, over the whole width;
    ``shaded`` paints the row. A row that ``parts`` is separated from the row above, as by a section without a name."""

    texts: Sequence[str]
    section: str = ""
    shaded: bool = False
    parts: bool = False


@dataclass(frozen=True)
class Shown:
    """``numbers`` is the tidy frame of the CSV file; ``columns`` and ``rows`` are what people read, above the
    ``notes``.

    The first ``labels`` columns say what a row is. All but the last of them are left out where they are those of the
    row above: rows that share the first one are a group.
    """

    numbers: pd.DataFrame
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    labels: int = 1

    def table(self, notes: Sequence[str] = (), signatures: Sequence[tuple[str, str]] = ()) -> Table:
        """For the writers, with further notes and the signatures."""
        sections, number = [], 0
        for row in self.rows:
            number += not sections or row.parts or row.section != sections[-1][1][0].section
            if number > len(sections):
                sections.append((number, []))
            sections[-1][1].append(row)
        whole = [TableSection([*self._groups(rows)], rows[0].section) for _, rows in sections]
        return Table(self.columns, whole, (*self.notes, *notes), signatures)

    def _groups(self, rows: Sequence[Row]) -> Iterator[Group]:
        """Rows by their first label; a table of one label has a group for each row."""
        for _, group in groupby(enumerate(rows), lambda one: one[1].texts[0] if self.labels > 1 else one[0]):
            lines: list[TableRow] = []
            above: Sequence[str] = ()
            members = [row for _, row in group]
            for row in members:
                lines.append(TableRow([*self._cells(row, above)], row.shaded))
                above = row.texts
            yield Group(members[0].texts[0], lines)

    def _cells(self, row: Row, above: Sequence[str]) -> Iterator[TableCell]:
        """The cells behind the first."""
        for number, (column, text) in enumerate(zip(self.columns, row.texts, strict=True)):
            repeated = number < self.labels - 1 and row.texts[: number + 1] == above[: number + 1]
            if number:
                yield TableCell("" if repeated else str(text), isinstance(text, Bold), column.shaded)
