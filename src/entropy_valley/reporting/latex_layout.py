"""How a table is laid out on paper: whose lines are broken, which columns and which rows stand together.

Widths are points, about right for LaTeX's ``\\footnotesize``; what is a little too wide is scaled down by LaTeX itself.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

from entropy_valley.reporting import latex

if TYPE_CHECKING:
    from entropy_valley.reporting.tables import Column, Group, Row, Section, Table

ROOM = 500  # before lines are broken: a tenth more than 16 cm, both columns of a paper; the font is then 7 pt
WIDEST = 550  # of a table that is not taken apart; the font is then 6.6 pt
GAP = 3  # on each side of a column
NARROWEST = 60  # of a column whose lines are broken
LINES = 58  # of one tabular, in a page of 24 cm
BOLD = 1.15  # how much wider it is

Item = TypeVar("Item")


def layouts(table: Table) -> list[Layout]:
    """The tabulars of a table: one, if it is neither much too wide nor higher than a page.

    A table that is too wide is taken apart by its columns' shared titles, as many together as there is room for; those
    without one stand in each.
    """
    titles = list(dict.fromkeys(column.over for column in table.columns if column.over))
    together = _packed(titles, lambda some: Layout(_with_columns(table, some)).width <= WIDEST)
    narrow = [_with_columns(table, some) for some in together] or [table]
    return [Layout(page) for one in narrow for page in _pages(one)]


class Layout:
    """One tabular: the width of each column (``whole``) and of those whose lines are broken (``broken``, else None)."""

    def __init__(self, table: Table) -> None:
        self.columns, self.sections = table.columns, table.sections
        groups = [group for section in table.sections for group in section.groups]
        titles = [_longest(latex.words(column.title)) * BOLD for column in self.columns]
        texts = [texts_of(groups, index) for index in range(len(titles))]
        self.whole, narrowest = (
            [max(title, *map(pieces, column)) for title, column in zip(titles, texts, strict=True)]
            for pieces in (_longest_line, _longest_word)
        )
        gaps = 2 * GAP * len(self.columns)
        self.broken = _broken(self.whole, narrowest, ROOM - gaps)
        self.width = gaps + sum(self.widths())
        self.lines = len(self.sections) + sum(map(self._lines, groups))

    def widths(self) -> list[float]:
        return [broken or whole for broken, whole in zip(self.broken, self.whole, strict=True)]

    def _lines(self, group: Group) -> int:
        """About how many lines a group takes."""
        rows = (
            max(self._broken_into(index, cell.text) for index, cell in enumerate(row.cells, 1)) for row in group.rows
        )
        return max(sum(rows), self._broken_into(0, group.label))

    def _broken_into(self, index: int, text: str) -> int:
        width = self.broken[index]
        return sum(max(1, math.ceil(latex.width(line) / width)) for line in text.split("\n")) if width else 1


def titled(column: Column, width: float) -> list[str]:
    """A column's title in as many lines as its width asks for."""
    lines: list[str] = []
    for word in latex.in_one_piece(column.title).split(" "):
        longer = f"{lines[-1]} {word}" if lines else ""
        if longer and BOLD * latex.width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def texts_of(groups: Sequence[Group], index: int) -> list[str]:
    """What groups say in a column; the first one has their labels."""
    if index == 0:
        return [group.label for group in groups]
    return [row.cells[index - 1].text for group in groups for row in group.rows]


def _broken(whole: Sequence[float], narrowest: Sequence[float], room: float) -> list[float | None]:
    """The width of each column whose lines must be broken so that all fit into ``room``; None for the others.

    The widest columns get the same width, which leaves the others whole.
    """
    widths, cap = list(whole), max(whole)
    while sum(widths) > room and cap > NARROWEST:
        cap -= 2
        widths = [max(least, min(most, cap)) for most, least in zip(whole, narrowest, strict=True)]
    return [width if width < most else None for width, most in zip(widths, whole, strict=True)]


def _pages(table: Table) -> list[Table]:
    """The table, or its parts that fit on a page each."""

    def page(sections: Sequence[Section]) -> Table:
        return dataclasses.replace(table, sections=tuple(sections))

    def fits(sections: Sequence[Section]) -> bool:
        return Layout(page(sections)).lines <= LINES

    def pieces(section: Section) -> list[Section]:
        def some(groups: Sequence[Group]) -> Section:
            return dataclasses.replace(section, groups=tuple(groups))

        return [some(groups) for groups in _packed(section.groups, lambda groups: fits([some(groups)]))]

    return [page(sections) for sections in _packed(list(itertools.chain(*map(pieces, table.sections))), fits)]


def _with_columns(table: Table, titles: Collection[str]) -> Table:
    """The table with the columns that have one of these shared titles, or none."""
    kept = [not column.over or column.over in titles for column in table.columns]

    def row(row: Row) -> Row:
        return dataclasses.replace(row, cells=tuple(itertools.compress(row.cells, kept[1:])))

    def group(group: Group) -> Group:
        return dataclasses.replace(group, rows=tuple(map(row, group.rows)))

    sections = (dataclasses.replace(one, groups=tuple(map(group, one.groups))) for one in table.sections)
    return dataclasses.replace(table, columns=tuple(itertools.compress(table.columns, kept)), sections=tuple(sections))


def _packed(items: Sequence[Item], fits: Callable[[Sequence[Item]], bool]) -> list[list[Item]]:
    """Items in their order, as many together as fit."""
    packs: list[list[Item]] = []
    for item in items:
        if packs and fits([*packs[-1], item]):
            packs[-1].append(item)
        else:
            packs.append([item])
    return packs


def _longest(pieces: Sequence[str]) -> float:
    return max(map(latex.width, pieces), default=0)


def _longest_line(text: str) -> float:
    return _longest(text.split("\n"))


def _longest_word(text: str) -> float:
    return _longest(latex.words(latex.in_one_piece(text)))
