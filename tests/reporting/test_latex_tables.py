"""The LaTeX of every table: it compiles by itself and fits into a two-column paper."""

from __future__ import annotations

import re

import pytest
from made_up import MADE_UP
from making import made
from test_latex import CHINESE, NASTY

from entropy_valley.reporting import latex, reports
from entropy_valley.reporting.latex_tables import packages, to_float, to_latex
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table, to_markdown

KEYS = [key for key, kind in reports.REPORTS.items() if "float.tex" in kind.endings]
PAPER = 455  # points: 16 cm
SMALLEST = 6.4 / 8  # of \footnotesize


@pytest.fixture(scope="session")
def every_table(tmp_path_factory):
    """Each table of made-up results, and whether it has scored cells."""
    params = {key: MADE_UP[key](tmp_path_factory.mktemp("made_up")) for key in KEYS}
    return {key: (made(reports.find(key), params[key])[0], bool(params[key].get("cells"))) for key in KEYS}


@pytest.fixture(scope="session")
def logs(every_table, pdflatex):
    """What pdflatex says of each table, bare and as a float, and of the width of its tabulars: one run for all."""
    body, needed = "", dict.fromkeys(latex.PACKAGES)
    for key, (table, _) in every_table.items():
        text = to_latex(table)
        tabulars = re.findall(
            r"\\begin\{tabular\}\{(?:l|c|r|>|p|\{).*?\\end\{tabular\}(?=\n\\end\{adjustbox\})", text, re.S
        )
        widths = "".join(
            rf"\setbox0\hbox{{\footnotesize\tabcolsep3pt {one}}}\typeout{{is \the\wd0}}" for one in tabulars
        )
        body += (
            f"\\typeout{{table {key}}}\n{text}\\clearpage\n{to_float(table, NASTY, 'tab:a_b')}\\clearpage\n{widths}\n"
        )
        needed |= dict.fromkeys(packages(table))
    found = re.split(r"^table (.*)$", pdflatex(body, needed), flags=re.M)
    return dict(zip(found[1::2], found[2::2], strict=True))


@pytest.mark.parametrize("key", KEYS)
def test_every_table_compiles_and_fits_into_a_paper(logs, key):
    assert "Overfull" not in logs[key]
    assert "Float too large" not in logs[key]
    widths = [float(width) for width in re.findall(r"^is ([\d.]+)pt$", logs[key], re.M)]
    assert widths
    assert PAPER / max(widths) > SMALLEST


@pytest.mark.parametrize("key", KEYS)
def test_every_table_names_the_number_of_its_sentences(every_table, key):
    table, is_scored = every_table[key]
    named = [note.text for note in table.notes if re.match(r"N = \d+ sentences\.|Sentences \(N\): ", note.text)]
    assert len(named) == is_scored


@pytest.mark.parametrize("key", KEYS)
def test_every_character_is_set(every_table, key):
    assert r"\texttt{U+" not in to_float(every_table[key][0], reports.find(key).caption, "tab:it")


def test_all_tables_have_one_scale(every_table):
    assert not [key for key, (table, _) in every_table.items() if re.search("× ?100", to_markdown(table))]


def table(columns, *rows, heading="", notes=()):
    """A table of texts; the first of each row is its label."""
    groups = tuple(Group(label, (Row(tuple(map(Cell, texts))),)) for label, *texts in rows)
    return Table(tuple(columns), (Section(groups, heading),), notes)


def test_every_feature_of_a_table_compiles(pdflatex):
    rows = (Row((Cell(NASTY), Cell("1", bold=True))), Row((Cell("x", shaded=True), Cell("")), shaded=True))
    columns = (Column("Place", align="l"), Column("A", over="Both"), Column("B", over="Both", align="r"))
    sections = (
        Section((Group("En→De", rows), Group("one", rows[:1])), heading="50% & more"),
        Section((Group("two", rows), Group("[x]", rows[:1]), Group("*", rows[:1]))),  # what a rule's \\ must not take
    )
    notes = (Note(NASTY), Note("* and"), Note("[0]"), Note("signature:", "nrefs:1|case:mixed_" * 12))
    assert "Overfull" not in pdflatex(to_latex(Table(columns, sections, notes)))


def test_long_texts_break_their_lines_and_numbers_do_not(pdflatex):
    columns = (Column("Source", align="l"), Column("Output", align="l"), Column("A long title of it", align="r"))
    made_up = table(columns, ("word " * 60, CHINESE * 8 + "\nsecond line", "0.8517 ± 0.0006"), ("x", "**", "1"))
    text = to_latex(made_up)
    assert packages(made_up) == [*latex.PACKAGES, "CJKutf8"]
    assert re.search(r"\\begin\{tabular\}\{(>\{\\raggedright\\arraybackslash\}p\{\d+pt\}){2}r\}", text)
    assert r"\textbf{A long title} \\ \textbf{of it}" in text
    assert r"\newline second line" in text
    assert "Overfull" not in pdflatex(text, packages(made_up))


def test_a_table_that_is_higher_than_a_page_is_several_tabulars():
    columns = (Column("Row", align="l"), Column("Number"))
    text = to_latex(table(columns, *((f"row {number}", "1") for number in range(100)), heading="All of them"))
    assert text.count(r"\toprule") == text.count("All of them") == text.count(r"\textbf{Number}") == 2
    assert re.findall(r"row (\d+)", text) == [str(number) for number in range(100)]


def test_a_float_is_the_fragment_with_caption_and_label():
    made_up = table((Column("Row", align="l"), Column("Number")), ("a", "1"))
    needs, *fragment = to_latex(made_up).splitlines()
    assert to_float(made_up, "100% of it.", "tab:it").splitlines() == [
        *(needs, r"\begin{table*}[t]", r"\centering", *fragment),
        *(r"\caption{100\% of it.}", r"\label{tab:it}", r"\end{table*}"),
    ]
