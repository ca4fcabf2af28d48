"""Tables in LaTeX: every table compiles by itself and fits into a two-column paper, whatever its texts are."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_hostile_reports import hostile_examples

from entropy_valley.experiment.tables import render
from entropy_valley.experiment.tables.render import Bold, Column, Row, Shown, to_text

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


@hostile_examples
@given(st.text(max_size=20))
def test_no_special_character_is_left_bare(text):
    commands = r"\\text\w+\{(U\+[0-9A-F]+)?\}|\\[{}$&#%_,]|\{[*[]\}|\$[^$]*\$|\\(dots|pounds|copyright)\{\}"
    bare = re.sub(r"\\(begin|end)\{CJK\*\}(\{UTF8\}\{gbsn\})?", "", re.sub(commands, "", render.escape(text)))
    assert not re.search(r"[\\{}$&#%_^|<>*[\x00-\x1f\x7f]", bare)


def test_every_feature_of_a_table_compiles(pdflatex):
    long = "word " * 60
    columns = [
        *(Column("Place", align="l"), Column("A", over="Both"), Column("A long title", over="Both", align="r")),
        Column("Text", align="l", shaded=True),
    ]
    rows = []
    for section, labels in (
        ("50% & more", ("En→De", long)),
        ("", ("two", "[x]", "*")),
    ):  # what a rule's \\ must not take
        for label in labels:
            rows.append(Row([label, NASTY, Bold("1"), Bold(f"{CHINESE * 8}\nsecond line")], section))
            if label in ("En→De", "two"):
                rows.append(Row([label, "x", "", long], section, shaded=True))
    signature = ("signature:", "nrefs:1|case:mixed_" * 12 + "\n}\\end{x}")
    text = to_text("tex", Shown(pd.DataFrame(), columns, rows, [NASTY, "* and", "[0]"], 2, [signature]))
    assert text.startswith(rf"% needs \usepackage{{{','.join([*render.LATEX_PACKAGES, render.CHINESE])}}}")
    assert text.count(r"\textit{50\% \& more}") == 1 and text.endswith(
        "% signature: " + signature[1].replace("\n", " ") + "\n"
    )
    assert "Overfull" not in pdflatex(text)


@pytest.mark.parametrize(("rows", "columns"), [(30, 20), (60, 8)])
def test_a_wide_table_is_scaled_and_a_long_one_takes_several_pages(rows, columns, pdflatex):
    listed = [Row([f"row {number // 2}", *["0.8123"] * (columns - 1)], "All") for number in range(rows)]
    shown = Shown(pd.DataFrame(), [Column(f"C{number}") for number in range(columns)], listed, labels=2)
    text = to_text("float.tex", shown, "", "It.", "tab:it")
    log = pdflatex(text)
    assert not re.search("Overfull|Float too large", log)
    assert text.count(r"\begin{table*}") == text.count(r"\textbf{C0}") == 1 + (rows > render.LATEX_PAGE)
    assert text.count(r"\caption") == 1
