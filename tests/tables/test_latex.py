"""Tables in LaTeX: every table compiles by itself and fits into a two-column paper, whatever its texts are."""

from __future__ import annotations

import re

import finished
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_hostile_reports import MARKUP

from entropy_valley import tables
from entropy_valley.tables import render
from entropy_valley.tables.render import (
    Column,
    Group,
    Table,
    TableCell,
    TableRow,
    TableSection,
    to_latex,
    to_markdown,
)

NASTY = (
    r"""50% of a_b & #1 ~ {x} ^ $ \ | < > “é” → ± − – × Δ ≤ ≥ · ’ … † " « Å ł ß ñ „ € ½ 1° λ © 🙂 ą Ж β₁ ⌈Ω⌉ ≠∞∈←↔√"""
)
CHINESE = "“中文”，GPU 与 50% 的译文。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b & 50%", r"a\_b \& 50\%"),
        ("En→Zh −1", r"En$\to$Zh $-$1"),
        ("0.1 ± 0.2", r"0.1\,$\pm$\,0.2"),
        ("* [0]†", r"{*} {[}0]$^{\dagger}$"),
        ('"n/a" ("x")', "``n/a'' (``x'')"),
        ("β₁ ⌊λ⌋", r"$\beta$$_{1}$ $\lfloor$$\lambda$$\rfloor$"),
        ("a🙂b\u200b", r"a\texttt{U+1F642}b"),  # what no font has
        ("GPU 译文。", r"GPU \begin{CJK*}{UTF8}{gbsn}译文。\end{CJK*}"),
        ("点點", r"\begin{CJK*}{UTF8}{gbsn}点\end{CJK*}\texttt{U+9EDE}"),  # LaTeX would leave the traditional one out
    ],
)
def test_escape(text, expected):
    assert render.escape(text) == expected


def hostile_examples(test):
    for text in MARKUP:
        test = example(text)(test)
    return test


@hostile_examples
@given(st.text(max_size=20))
def test_no_special_character_is_left_bare(text):
    commands = r"\\text\w+\{(U\+[0-9A-F]+)?\}|\\[{}$&#%_,]|\{[*[]\}|\$[^$]*\$|\\(dots|pounds|copyright)\{\}"
    bare = re.sub(r"\\(begin|end)\{CJK\*\}(\{UTF8\}\{gbsn\})?", "", re.sub(commands, "", render.escape(text)))
    assert not re.search(r"[\\{}$&#%_^|<>*[\x00-\x1f\x7f]", bare)


@pytest.fixture(scope="module")
def every_table(tmp_path_factory):
    """Each table of the finished run, by its report."""
    run = finished.Run(tmp_path_factory.mktemp("finished"))
    reports = tables.configured(run.experiment)
    return {report: run.table(name) for name, report in reports.items() if "float.tex" in report.endings}


def test_every_table_compiles_and_fits_into_a_paper(every_table, pdflatex):
    body = "\\clearpage\n".join(
        part
        for report, table in every_table.items()
        for part in (rf"\typeout{{table {report.key}}}", to_latex(table), to_latex(table, NASTY, "tab:a_b"))
    )
    log = pdflatex(body)
    assert not re.search(r"Overfull.*|Float too large.*", log)


def test_every_table_names_the_number_of_its_sentences(every_table):
    for report, table in every_table.items():
        named = [note for note in table.notes if re.match(r"N = \d+ sentences\.|Sentences \(N\): ", note)]
        assert len(named) == report.scored, report.key


def test_the_fonts_have_every_character_and_scores_have_one_scale(every_table):
    for report, table in every_table.items():
        assert r"\texttt{U+" not in to_latex(table, report.caption, "tab:it"), report.key
        of_paper = report.key == "tables/ar_reference"  # as in the paper
        assert bool(re.search("× ?100", to_markdown(table))) == of_paper, report.key


def test_every_feature_of_a_table_compiles(pdflatex):
    long = "word " * 60
    rows = (
        TableRow((TableCell(NASTY), TableCell("1", bold=True), TableCell(f"{CHINESE * 8}\nsecond line", bold=True))),
        TableRow((TableCell("x", shaded=True), TableCell(""), TableCell(long)), shaded=True),
    )
    columns = (Column("Place", align="l"), Column("A", over="Both"), Column("A long title", over="Both", align="r"))
    sections = (
        TableSection((Group("En→De", rows), Group(long, rows[:1])), heading="50% & more"),
        TableSection(
            (Group("two", rows), Group("[x]", rows[:1]), Group("*", rows[:1]))
        ),  # what a rule's \\ must not take
    )
    signature = ("signature:", "nrefs:1|case:mixed_" * 12 + "\n}\\end{x}")
    table = Table((*columns, Column("Text", align="l")), sections, (NASTY, "* and", "[0]"), (signature,))
    text = to_latex(table)
    assert text.startswith(rf"% needs \usepackage{{{','.join([*render.LATEX_PACKAGES, render.CHINESE])}}}")
    assert "Overfull" not in pdflatex(text)


@pytest.mark.parametrize(
    ("rows", "columns", "environment"),
    [(30, 8, "tabular"), (30, 20, "minipage"), (60, 8, "longtable"), (60, 20, "landscape")],
)
def test_a_large_table_is_turned_or_takes_several_pages(rows, columns, environment, pdflatex):
    cells = tuple(TableCell("0.8123") for _ in range(columns - 1))
    groups = tuple(Group(f"row {number}", (TableRow(cells), TableRow(cells))) for number in range(rows // 2))
    text = to_latex(
        Table(tuple(Column(f"C{n}") for n in range(columns)), (TableSection(groups, "All"),)), "It.", "tab:it"
    )
    assert rf"\begin{{{environment}}}" in text
    log = pdflatex(text)
    assert not re.search("Overfull|too large", log)
    assert (r"\begin{table*}" in text) != ("longtable" in text)


FLOAT = r"""% needs \usepackage{booktabs,multirow,colortbl,adjustbox,tabulary}
\begin{table*}[t]
\begingroup\centering\footnotesize\setlength{\tabcolsep}{3pt}\setlength{\tymin}{6em}
\begin{adjustbox}{max width=\linewidth,max totalheight=.8\textheight}
\begin{tabular}{lrc}
\toprule
\multicolumn{1}{c}{} & \multicolumn{2}{c}{\textbf{Both}} \\
\cmidrule(lr){2-3}
\textbf{Row} & \begin{tabular}[b]{@{}r@{}}\textbf{A long} \\ \textbf{title}\end{tabular} & \textbf{B} \\
\midrule
\rowcolor[RGB]{240,238,245}
\multicolumn{3}{l}{\textit{Seed 1}} \\
 & 1 & \cellcolor[RGB]{230,241,248}2 \\
\rowcolor[RGB]{230,241,248}
\multirow{-2}{*}{En$\to$Zh} & \textbf{3} & 4 \\
\midrule
one & 5 & 6 \\
\bottomrule
\end{tabular}
\end{adjustbox}
\par\nopagebreak\smallskip
\parbox{\linewidth}{\scriptsize\raggedright
N = 2.
One run.
}\par\endgroup
% sacreBLEU: nrefs:1|case:mixed
\caption{100\% of it.}
\label{tab:it}
\end{table*}
"""


def test_a_float():
    columns = (Column("Row", align="l"), Column("A long title", "Both", "r"), Column("B", "Both"))
    rows = (
        TableRow((TableCell("1"), TableCell("2", shaded=True))),
        TableRow((TableCell("3", bold=True), TableCell("4")), shaded=True),
    )
    groups = (Group("En→Zh", rows), Group("one", (TableRow((TableCell("5"), TableCell("6"))),)))
    table = Table(
        columns,
        (TableSection(groups, "Seed 1"),),
        ("N = 2.", "One run."),
        (("sacreBLEU:", "nrefs:1|case:mixed"),),
    )
    assert to_latex(table, "100% of it.", "tab:it") == FLOAT
