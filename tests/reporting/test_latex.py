from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.reporting import latex
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table, to_latex

NASTY = r"50% of a_b & #1 ~ {x} ^ $ \ | < > “é” → ± − – × Δ ≤ ≥ · ’ … †"


def test_escape():
    assert latex.escape("a_b & 50%") == r"a\_b \& 50\%"
    assert latex.escape("En→Zh ± −1") == r"En$\to$Zh $\pm$ $-$1"
    assert latex.escape("* [0]†") == r"{*} {[}0]$^{\dagger}$"
    assert latex.escape("\\{}") == r"\textbackslash{}\{\}"


@given(st.text(st.sampled_from("ab&%$#_{}~^\\|<>"), max_size=20))
def test_no_special_character_is_left_bare(text):
    bare = re.sub(r"\\text[a-z]+\{\}|\\[&%$#_{}]", "", latex.escape(text))
    assert not set(bare) & set("&%$#_{}~^\\|<>")


def test_what_pdflatex_cannot_set_is_refused():
    with pytest.raises(InputError, match="'中'"):
        latex.escape("中文")


def test_what_a_line_ends_on_does_not_take_the_next_line(pdflatex):
    rows = (Row((Cell("1"),)),)
    columns = (Column("a", align="l"), Column("b"))
    table = Table(
        columns, (Section((Group("[x]", rows), Group("*", rows))),), (Note("first"), Note("* and"), Note("[0]"))
    )
    pdflatex(to_latex(table))


def test_signatures_may_break_behind_separators():
    assert latex.code("tok:zh|v") == r"\texttt{tok:\allowbreak{}zh\textbar{}\allowbreak{}v}"


def test_every_feature_of_a_table_compiles(pdflatex):
    rows = (Row((Cell(NASTY), Cell("1", bold=True))), Row((Cell("x", shaded=True), Cell("")), shaded=True))
    columns = (Column("Place", align="l"), Column("A", over="Both"), Column("B", over="Both", align="r"))
    sections = (
        Section((Group("En→De", rows), Group("one", rows[:1])), heading="50% & more"),
        Section((Group("two", rows),)),
    )
    table = Table(columns, sections, (Note(NASTY), Note("signature:", "nrefs:1|case:mixed_" * 12)))
    assert "Overfull" not in pdflatex(to_latex(table))
