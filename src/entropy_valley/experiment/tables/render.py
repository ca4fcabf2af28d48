"""What a table shows, columns, rows of texts and notes, and how it is written: CSV from its numbers, and the texts
through a template for Markdown, HTML or LaTeX. The texts are plain Unicode; the filters below escape them."""

import csv
import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from entropy_valley import files
from entropy_valley.texts import guarded, shown

FOLDER = Path(__file__).with_name("templates")
OPEN = 3  # notes below a table that everybody reads: the rest is folded, and a comment in LaTeX
LATEX_PAGE = 45  # rows: a table with more goes over several pages
LATEX_PACKAGES = ("booktabs", "colortbl", "adjustbox", "varwidth")  # what every table needs
CHINESE = "CJKutf8"  # and what one with Chinese needs
FONT = "gbsn"  # the Chinese font, of Debian's latex-cjk-chinese and of TeX Live's collection-langchinese


@dataclass(frozen=True)
class Column:
    """A column: its title, the one it shares with its neighbours, its alignment (l, c, r), whether it is painted."""

    title: str
    over: str = ""
    align: str = "c"
    shaded: bool = False


def aligned(align: str, *titles: str, over: str = "", shaded: bool = False) -> list[Column]:
    """Columns that differ in their titles alone."""
    return [Column(title, over, align, shaded) for title in titles]


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

    def pages(self, rows: int) -> list[Self]:
        """The table in parts of so many rows, each with the labels and the section of its first row."""
        # A table without rows is one page.
        starts = range(0, max(len(self.rows), 1), rows)
        return [dataclasses.replace(self, rows=self.rows[start : start + rows]) for start in starts]


# --- How it is written.


def write_table(paths: Mapping[str, Path], table: Shown, title: str, caption: str, label: str) -> None:
    """Write a table as files with these endings, see :func:`to_text`, and its numbers as ``csv``."""
    # No file is replaced before all texts are there.
    texts = {path: to_text(ending, table, title, caption, label) for ending, path in paths.items() if ending != "csv"}
    write_csv(paths["csv"], table.numbers)
    for path, text in texts.items():
        files.write_text(path, text)


def to_text(ending: str, table: Shown, title: str = "", caption: str = "", label: str = "") -> str:
    """The table as a file with this ending.

    ``md``: a GitHub table, each section below its heading. ``html``: a page of its own with the ``title``; with a
    ``caption``, that stands above the table and the notes below. ``tex``: booktabs, to ``\\input`` into a ``table*``;
    ``float.tex``: the same in one of its own, with ``caption`` and ``label``. tabulary breaks long texts into lines,
    and adjustbox scales down what is still too large for a page. The first line names the packages that are needed.
    """
    if not ending.endswith("tex"):
        return PAGES.get_template(f"table.{ending}").render(table=table, title=title, caption=caption)
    if ending == "tex":
        caption = label = ""
    pages = table.pages(LATEX_PAGE)
    text = LATEX.get_template("table.tex").render(table=table, pages=pages, caption=caption, label=label)
    packages = [*LATEX_PACKAGES, CHINESE] if r"\begin{CJK*}" in text else LATEX_PACKAGES
    where = "; of several pages, so it must stand outside of floats" if len(pages) > 1 and not label else ""
    return rf"% needs \usepackage{{{','.join(packages)}}}{where}" + f"\n{text}"


def on_one_line(text: str) -> str:
    """The text for print, see :func:`.texts.shown`."""
    # Most texts can be printed as they are.
    return text if text.isprintable() else shown(text)


def write_page(path: str | Path, name: str, title: str, data: Any) -> None:
    """Write the page of the template ``name``: texts in ``data``, a JSON value, are never read as HTML."""
    files.write_text(path, PAGES.get_template(f"{name}.html").render(title=title, data=data))


# Of the paper's tables and figures, in its order, and of ours whose names say little.
_LISTED = [*csv.DictReader(files.read_lines(Path(__file__).with_name("titles.csv")))]
PAPER = [row["path"] for row in _LISTED if row["in_paper"]]
TITLES = {row["path"].rpartition("/")[2]: row["title"] for row in _LISTED}


def title(name: str) -> str:
    """The title of a table or figure, from the name of its file."""
    return TITLES.get(name) or f"{name[:1].upper()}{name[1:].replace('_', ' ')}"


# --- CSV.


def write_csv(path: Path, tidy: pd.DataFrame) -> None:
    """Write a tidy frame with ten significant digits; what is not available is empty, and no text is a formula."""
    safe = tidy.copy()
    for name in tidy.select_dtypes("object"):
        # A column has few texts, each many times.
        texts = {value: _safe(value) for value in tidy[name].unique() if isinstance(value, str)}
        safe[name] = tidy[name].map(lambda value, texts=texts: texts.get(value, value))
    files.write_text(path, safe.to_csv(index=False, float_format="%.10g"))


def _safe(value: str) -> str:
    """A text of a CSV file: one that is not a number is guarded; its lines end with LF, as those of the file."""
    if re.fullmatch(r"[+-][\d.,]+%?", value):
        return value
    return re.sub(r"\r\n?", "\n", guarded(value))


# --- Markdown.

# Backslash, column, emphasis, code, formula, HTML, entity, link: only where they would be more than the character.
_MARKS = re.compile(r"[\\|*`$]|(?<!\w)_|_(?!\w)|~(?=~)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|\](?=[(\[:])")


def markdown(text: str) -> str:
    """What Markdown would read as a mark, a link, HTML or a formula stays text."""
    marked = _MARKS.sub(r"\\\g<0>", on_one_line(text))
    return f"**{marked}**" if isinstance(text, Bold) else marked


def paragraph(text: str) -> str:
    """The text as a paragraph: no heading, quotation or list, whatever it begins with."""
    return re.sub(r"^(\d*)([#>+=-]|[.)](?= |$))", r"\1\\\2", markdown(text).strip())


def code(text: str) -> str:
    """The text as code, between more backticks than it has."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{blank}{on_one_line(text)}{blank}{fence}"


# --- LaTeX, for pdflatex's own fonts.

# Each character that LaTeX reads otherwise, or lacks, and how it is written there.
_SPECIAL = dict(line.split("\t") for line in (FOLDER / "latex.tsv").read_text(encoding="utf-8").splitlines())
_SPECIAL |= {"\u00a0": "~", "\u2009": r"\,"}
_LETTERS = set("ßæøœłÆØŒŁ¡¿§¶")
_ACCENTS = set("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
_CHINESE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+")  # characters and punctuation


def escape(text: str) -> str:
    """Text with every special character escaped, the known symbols as mathematics, and Chinese in its own font.

    Chinese needs the package :data:`CHINESE`. What none of these fonts has prints as its code point: U+1F600.
    """
    text = re.sub(r"\s±\s", "\u2009±\u2009", re.sub(r'(^|[\s(])"', r"\1“", text))
    in_font = rf"\\begin{{CJK*}}{{UTF8}}{{{FONT}}}\g<0>\\end{{CJK*}}"
    return _CHINESE.sub(in_font, "".join(map(_character, text)))


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character in _LETTERS or (character.isascii() and character.isprintable()):
        return character
    if character.isspace():
        return " "
    # The Chinese font has the simplified characters of GB 2312, and would leave a gap for any other.
    if _CHINESE.match(character) and character.encode("gb2312", "ignore"):
        return character
    letter = unicodedata.normalize("NFD", character)
    if letter[0].isascii() and letter[1:] in _ACCENTS:
        return character
    return "" if unicodedata.category(character) == "Cf" else rf"\texttt{{U+{ord(character):04X}}}"


def latex_bold(text: str) -> str:
    return rf"\textbf{{{escape(text)}}}" if text else ""


def latex_cell(text: str, column: Column) -> str:
    """The text of a cell, line by line, in the colour of its column."""
    write = latex_bold if isinstance(text, Bold) else escape
    colour = r"\cellcolor[RGB]{230,241,248}" if column.shaded else ""
    return colour + r"\newline ".join(map(write, text.split("\n")))


# --- The templates: those of Markdown and HTML, and those of LaTeX, whose braces Jinja's own marks would need.

PAGES = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=select_autoescape(["html"]),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)
PAGES.globals["OPEN"] = OPEN
PAGES.tests["bold"] = lambda text: isinstance(text, Bold)
PAGES.filters |= {"shown": on_one_line, "bold": Bold, "markdown": markdown, "paragraph": paragraph, "code": code}
PAGES.filters |= {"tex": escape, "tex_bold": latex_bold, "tex_cell": latex_cell}
PAGES.policies["json.dumps_kwargs"] = {"ensure_ascii": False}  # Chinese takes half the bytes
LATEX = PAGES.overlay(
    block_start_string="<%",
    block_end_string="%>",
    variable_start_string="<<",
    variable_end_string=">>",
    comment_start_string="<#",
    comment_end_string="#>",
    lstrip_blocks=True,
)
