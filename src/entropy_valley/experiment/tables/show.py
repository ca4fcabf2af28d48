"""What a table shows: columns, rows of texts, notes and signatures. :mod:`render` writes it."""

from __future__ import annotations

import dataclasses
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


OPEN = 3  # notes below a table that everybody reads


@dataclass(frozen=True)
class Shown:
    """``numbers`` is the tidy frame of the CSV file. ``columns`` and ``rows`` are what people read, all of it plain
    Unicode; below come the ``notes``, then the ``signatures``, each in typewriter type behind its name. The first
    :data:`OPEN` notes are always in sight. The rest, and the signatures, are folded in pages and Markdown, and comments
    in LaTeX.

    The first ``labels`` columns say what a row is. All but the last of them are left out where they are those of the
    row above: rows that share the first one are a group.
    """

    numbers: pd.DataFrame
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    labels: int = 1
    signatures: Sequence[tuple[str, str]] = ()

    @property
    def open_notes(self) -> Sequence[str]:
        return self.notes[:OPEN]

    @property
    def folded_notes(self) -> Sequence[str]:
        return self.notes[OPEN:]

    @property
    def sections(self) -> list[tuple[str, list[list[Row]]]]:
        """The sections by their names, each as groups of rows, whose repeated labels are left out. A row of a table
        with one label is a group of its own."""
        sections: list[tuple[str, list[list[Row]]]] = []
        above = None
        for row in self.rows:
            if above is None or row.parts or row.section != above.section:
                sections.append((row.section, []))
                above = None
            groups = sections[-1][1]
            if above is None or self.labels == 1 or row.texts[0] != above.texts[0]:
                groups.append([row])
            else:
                groups[-1].append(dataclasses.replace(row, texts=self._without_repeated(row.texts, above.texts)))
            above = row
        return sections

    def _without_repeated(self, texts: Sequence[str], above: Sequence[str]) -> list[str]:
        own = list(texts)
        for number in range(self.labels - 1):
            if texts[: number + 1] == above[: number + 1]:
                own[number] = ""
        return own

    @property
    def title_groups(self) -> list[tuple[str, int]]:
        """The titles that neighbours share, each with the number of its columns; none where no column has one."""
        groups: list[tuple[str, int]] = []
        for column in self.columns:
            if groups and groups[-1][0] == column.over:
                groups[-1] = (column.over, groups[-1][1] + 1)
            else:
                groups.append((column.over, 1))
        return groups if any(over for over, _ in groups) else []
