"""What a table is, and how it is written as Markdown, CSV and HTML."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from entropy_valley import files
from entropy_valley.texts import guarded, shown

# --- One model for every table of the paper, and its Markdown and CSV; :mod:`latex` writes it in LaTeX.
#
# Texts of a table are plain Unicode; each writer escapes them for its format.


# Backslash, column, emphasis, code, formula, HTML, entity, link: only where they would be more than the character.
_MARKS = re.compile(r"[\\|*`$]|(?<!\w)_|_(?!\w)|~(?=~)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|\](?=[(\[:])")


@dataclass(frozen=True)
class Column:
    """A column: its title, the title it shares with its neighbours, and its alignment (l, c or r)."""

    title: str
    over: str = ""
    align: str = "c"


@dataclass(frozen=True)
class TableCell:
    """What one row says in one column."""

    text: str
    bold: bool = False
    shaded: bool = False


@dataclass(frozen=True)
class TableRow:
    """The cells behind the group's label; ``shaded`` paints the whole row."""

    cells: tuple[TableCell, ...]
    shaded: bool = False


@dataclass(frozen=True)
class Group:
    """Rows between two rules that share the label in the first column."""

    label: str
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class TableSection:
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
    sections: tuple[TableSection, ...]
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


def _markdown_section(section: TableSection, width: int) -> list[str]:
    heading = [_markdown_row([f"**{_markdown(section.heading)}**", *[""] * (width - 1)])] if section.heading else []
    rows = [
        _markdown_row([_markdown(group.label) if first else "", *map(_markdown_cell, row.cells)])
        for group in section.groups
        for first, row in zip(itertools.chain([True], itertools.repeat(False)), group.rows, strict=False)
    ]
    return heading + rows


def _markdown_cell(cell: TableCell) -> str:
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


# --- Pages for a browser, each one file that needs no other: a table, the matrix, the sentences of a test set.

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters["shown"] = shown
TEMPLATES.policies["json.dumps_kwargs"] = {"ensure_ascii": False}  # Chinese takes half the bytes


def write_page(path: str | Path, name: str, title: str, data: Any) -> None:
    """Write the page of the template ``name``: texts in ``data``, a JSON value, are never read as HTML."""
    files.write_text(path, TEMPLATES.get_template(f"{name}.html").render(title=title, data=data))


# --- A table as a page of HTML that needs no other file.

TITLES = {  # of tables and figures whose names say little
    "hero": "The results at a glance",
    "method": "The method",
    "main": "Main results",
    "crossbb": "Results by backbone",
    "crossbb_bleu": "Results by backbone, in BLEU",
    "matrix": "All orders and step budgets",
    "full_significance": "Significance tests",
    "ar_reference": "Autoregressive reference",
    "dream_instruct": "Dream-Instruct",
    "cases": "Three sentences",
    "checks": "Checks of the choices",
    "corpus": "Training pairs and test sets",
    "dissociation": "Length error and score",
    "entropy_valley": "The entropy valley",
    "pareto": "Scores by step budget",
    "full_pareto": "Step budgets",
    "hyperparams": "Hyperparameters",
    "order_sweep_summary": "Reveal orders",
    "negative_order": "SIG-first by category",
    "multi_candidate": "Several candidates decoded",
    "human_eval": "Human evaluation",
    "human_eval_details": "Human evaluation, in detail",
    "fwdcount_control": "Control of forward passes",
    "defr_transfer": "Transfer to De→Fr",
    "eos_padding": "EOS padding",
}


def page(title: str, table: Table, caption: str = "") -> str:
    """The whole page: title, the table's notes, links to its sections, and the table.

    With a ``caption``, that stands above the table, and the notes below.
    """
    groups = [(over, len(list(group))) for over, group in itertools.groupby(column.over for column in table.columns)]
    over = groups if any(title for title, _ in groups) else []  # titles that neighbours share
    return TEMPLATES.get_template("table.html").render(title=title, table=table, caption=caption, over=over)


def title(name: str) -> str:
    """The title of a table or figure, from the name of its file."""
    return TITLES.get(name) or f"{name[:1].upper()}{name[1:].replace('_', ' ')}"
