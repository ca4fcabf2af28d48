"""A table as LaTeX: a fragment that fits into a two-column paper, and the same as a float with caption and label."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from entropy_valley.reporting import latex
from entropy_valley.reporting.latex_layout import GAP, Layout, layouts, texts_of, titled

if TYPE_CHECKING:
    from entropy_valley.reporting.tables import Cell, Column, Group, Note, Section, Table

ROW_COLOUR = r"[RGB]{230,241,248}"
HEADING_COLOUR = r"[RGB]{240,238,245}"


def to_latex(table: Table) -> str:
    """A booktabs fragment to ``\\input`` into a table environment; it needs :func:`packages`.

    What is still too wide with broken lines is scaled down to the width of the line. What is too high for a page, or
    much too wide, is several tabulars, one below the other.
    """
    return "\n".join([_needs(table), *_fragment(table)]) + "\n"


def to_float(table: Table, caption: str, label: str) -> str:
    """The fragment in a ``table*`` of its own."""
    below = [rf"\caption{{{latex.escape(caption)}}}", rf"\label{{{label}}}", r"\end{table*}"]
    return "\n".join([_needs(table), r"\begin{table*}[t]", r"\centering", *_fragment(table), *below]) + "\n"


def packages(table: Table) -> list[str]:
    """The packages that the table's LaTeX needs."""
    return [*latex.PACKAGES, *([latex.CHINESE] if any(map(latex.is_chinese, _texts(table))) else [])]


def _needs(table: Table) -> str:
    return rf"% needs \usepackage{{{','.join(packages(table))}}}"


def _texts(table: Table) -> Iterator[str]:
    for section in table.sections:
        yield section.heading
        for index, column in enumerate(table.columns):
            yield column.title
            yield from texts_of(section.groups, index)
    yield from (note.text for note in table.notes)


def _fragment(table: Table) -> list[str]:
    tabulars = "\\par\\smallskip\n".join("\n".join(_tabular(layout)) for layout in layouts(table))
    size = rf"\begingroup\footnotesize\setlength{{\tabcolsep}}{{{GAP}pt}}"
    return [size, tabulars, *_notes(table.notes), r"\endgroup"]


def _tabular(layout: Layout) -> list[str]:
    """One tabular, no wider than the line."""
    return [
        r"\noindent\begin{adjustbox}{max width=\linewidth}",
        rf"\begin{{tabular}}{{{''.join(map(_column, layout.columns, layout.broken))}}}",
        r"\toprule",
        *_header(layout),
        *(line for section in layout.sections for line in _section(layout, section)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
    ]


def _column(column: Column, width: float | None) -> str:
    """The column's type: l, c or r, or a paragraph of that width that is set so."""
    if width is None:
        return column.align
    set_so = {"l": r"\raggedright", "c": r"\centering", "r": r"\raggedleft"}[column.align]
    return rf">{{{set_so}\arraybackslash}}p{{{width:.0f}pt}}"


def _header(layout: Layout) -> list[str]:
    """The shared titles with their partial rules when there are any, then the titles."""
    titles = _row(list(map(_title, layout.columns, layout.widths())))
    if not any(column.over for column in layout.columns):
        return [titles]
    cells, rules, start = [], "", 1
    for over, group in itertools.groupby(layout.columns, key=lambda column: column.over):
        width = len(list(group))
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_bold(latex.escape(over))}}}" if over else " & " * (width - 1))
        rules += rf"\cmidrule(lr){{{start}-{start + width - 1}}}" if over else ""
        start += width
    return [_row(cells), rules, titles]


def _title(column: Column, width: float) -> str:
    bold = [_bold(latex.escape(line)) for line in titled(column, width)]
    stacked = r" \\ ".join(bold)
    return stacked if len(bold) == 1 else rf"\begin{{tabular}}[b]{{@{{}}{column.align}@{{}}}}{stacked}\end{{tabular}}"


def _section(layout: Layout, section: Section) -> list[str]:
    """A rule, the heading, and the groups, with a rule between two of them unless each is a single row."""
    lines = [r"\midrule"]
    if section.heading:
        heading = rf"\multicolumn{{{len(layout.columns)}}}{{l}}{{\textit{{{latex.escape(section.heading)}}}}} \\"
        lines += [rf"\rowcolor{HEADING_COLOUR}", heading]
    rule = [r"\midrule"] if any(len(group.rows) > 1 for group in section.groups) else []
    for number, group in enumerate(section.groups):
        lines += (rule if number else []) + _group(layout, group)
    return lines


def _group(layout: Layout, group: Group) -> list[str]:
    """The label hangs from the last row upwards, so that no row's colour is painted over it."""
    first, *others = layout.broken
    lines, label = [], _text(group.label, first)
    if len(group.rows) > 1:
        label = rf"\multirow{{-{len(group.rows)}}}{{{'=' if first else '*'}}}{{{label}}}"
    for index, row in enumerate(group.rows, 1):
        lines += [rf"\rowcolor{ROW_COLOUR}"] if row.shaded else []
        lines.append(_row([label if index == len(group.rows) else "", *map(_cell, row.cells, others)]))
    return lines


def _cell(cell: Cell, width: float | None) -> str:
    text = _text(cell.text, width)
    return (rf"\cellcolor{ROW_COLOUR}" if cell.shaded else "") + (_bold(text) if cell.bold else text)


def _text(text: str, width: float | None) -> str:
    """A text in a column; only one whose lines are broken has several."""
    return (r"\newline " if width else " ").join(map(latex.escape, latex.in_one_piece(text).split("\n")))


def _bold(text: str) -> str:
    return rf"\textbf{{{text}}}" if text else ""


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _notes(notes: Sequence[Note]) -> list[str]:
    lines = [latex.escape(note.text) + (f" {latex.code(note.signature)}" if note.signature else "") for note in notes]
    below = r"\par\nopagebreak\smallskip\noindent\parbox{\linewidth}{\scriptsize\raggedright"
    return [below, " \\\\\n".join(lines) + "}"] if lines else []
