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
from entropy_valley.reporting import latex

ROW_COLOUR = r"[RGB]{230,241,248}"
HEADING_COLOUR = r"[RGB]{240,238,245}"


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


def to_latex(table: Table) -> str:
    """A booktabs fragment to ``\\input`` into a table environment; see ``latex.PACKAGES``."""
    lines = [
        "% needs " + ", ".join(latex.PACKAGES),
        r"\begingroup\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\begin{{tabular}}{{{''.join(column.align for column in table.columns)}}}",
        r"\toprule",
        *_latex_header(table.columns),
        *itertools.chain.from_iterable(_latex_section(section, len(table.columns)) for section in table.sections),
        r"\bottomrule",
        r"\end{tabular}",
        *_latex_notes(table.notes),
        r"\endgroup",
    ]
    return "\n".join(lines) + "\n"


def to_markdown(table: Table) -> str:
    """A GitHub table, a heading in a row of its own, then the footnote."""
    titles = [_markdown(f"{column.over} {column.title}".strip()) for column in table.columns]
    rules = [{"l": ":--", "c": ":-:", "r": "--:"}[column.align] for column in table.columns]
    rows = [row for section in table.sections for row in _markdown_section(section, len(table.columns))]
    notes = [f"{_markdown(note.text)}{f' `{note.signature}`' if note.signature else ''}" for note in table.notes]
    return "\n".join([_markdown_row(titles), _markdown_row(rules), *rows]) + "\n\n" + "\n\n".join(notes) + "\n"


def _latex_header(columns: Sequence[Column]) -> list[str]:
    """The shared titles with their partial rules when there are any, then the titles."""
    titles = _latex_row([_bold(latex.escape(column.title)) for column in columns])
    if not any(column.over for column in columns):
        return [titles]
    cells, rules, start = [], "", 1
    for over, group in itertools.groupby(columns, key=lambda column: column.over):
        width = len(list(group))
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_bold(latex.escape(over))}}}" if over else " & " * (width - 1))
        rules += rf"\cmidrule(lr){{{start}-{start + width - 1}}}" if over else ""
        start += width
    return [_latex_row(cells), rules, titles]


def _latex_section(section: Section, width: int) -> list[str]:
    """A rule, the heading, and the groups, with a rule between two of them unless each is a single row."""
    lines = [r"\midrule"]
    if section.heading:
        heading = rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex.escape(section.heading)}}}}} \\"
        lines += [rf"\rowcolor{HEADING_COLOUR}", heading]
    rule = [r"\midrule"] if any(len(group.rows) > 1 for group in section.groups) else []
    for number, group in enumerate(section.groups):
        lines += (rule if number else []) + _latex_group(group)
    return lines


def _latex_group(group: Group) -> list[str]:
    """The label hangs from the last row upwards, so that no row's colour is painted over it."""
    lines = []
    for index, row in enumerate(group.rows, 1):
        last = index == len(group.rows)
        label = rf"\multirow{{-{index}}}{{*}}{{{latex.escape(group.label)}}}" if last else ""
        lines += [rf"\rowcolor{ROW_COLOUR}"] if row.shaded else []
        lines.append(_latex_row([label, *map(_latex_cell, row.cells)]))
    return lines


def _latex_cell(cell: Cell) -> str:
    text = latex.escape(cell.text)
    return (rf"\cellcolor{ROW_COLOUR}" if cell.shaded else "") + (_bold(text) if cell.bold else text)


def _bold(text: str) -> str:
    return rf"\textbf{{{text}}}" if text else ""


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_notes(notes: Sequence[Note]) -> list[str]:
    lines = [latex.escape(note.text) + (f" {latex.code(note.signature)}" if note.signature else "") for note in notes]
    if not lines:
        return []
    return [r"\par\smallskip", r"\noindent\parbox{\linewidth}{\scriptsize\raggedright", " \\\\\n".join(lines) + "}"]


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
