"""What a table shows: columns, rows of texts, notes and signatures. :mod:`render` writes it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Column:
    """A column: its title, the one it shares with its neighbours, its alignment (l, c, r), whether it is painted."""

    title: str
    over: str = ""
    align: str = "c"
    shaded: bool = False


class Bold(str):
    """The text of a cell, in bold type."""


@dataclass(frozen=True)
class Row:
    """A text for each column. ``section`` stands above the first of the rows that share it, over the whole width;
    ``shaded`` paints the row. A row that ``parts`` begins a section, even one without a name."""

    texts: Sequence[str]
    section: str = ""
    shaded: bool = False
    parts: bool = False


@dataclass(frozen=True)
class Shown:
    """``numbers`` is the tidy frame of the CSV file. ``columns`` and ``rows`` are what people read, all of it plain
    Unicode; below come the ``notes``, then the ``signatures``, each in typewriter type behind its name.

    The first ``labels`` columns say what a row is. All but the last of them are left out where they repeat the row
    above.
    """

    numbers: pd.DataFrame
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    labels: int = 1
    signatures: Sequence[tuple[str, str]] = ()

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        """The sections by their names, each with its rows, whose repeated labels are left out."""
        sections: list[tuple[str, list[Row]]] = []
        above = None
        for row in self.rows:
            # In a section, the first row has all its labels.
            if above is None or row.parts or row.section != above.section:
                sections.append((row.section, []))
                above = None
            texts = list(row.texts)
            for number in range(self.labels - 1):
                # A label that repeats is still printed where one to its left does not.
                if above is None or row.texts[number] != above.texts[number]:
                    break
                texts[number] = ""
            sections[-1][1].append(dataclasses.replace(row, texts=texts))
            above = row
        return sections

    @property
    def title_groups(self) -> list[tuple[str, int, int]]:
        """The titles that neighbours share, each with the numbers of its first and last column, from 1 on; none where
        no column has one."""
        groups = []
        last = 0
        for over, columns in itertools.groupby(column.over for column in self.columns):
            first, last = last + 1, last + len(list(columns))
            groups.append((over, first, last))
        return groups if any(column.over for column in self.columns) else []

    def pages(self, rows: int) -> list[Shown]:
        """The table in parts of so many rows, each with the labels and the section of its first row."""
        # A table without rows is one page.
        starts = range(0, max(len(self.rows), 1), rows)
        return [dataclasses.replace(self, rows=self.rows[start : start + rows]) for start in starts]
