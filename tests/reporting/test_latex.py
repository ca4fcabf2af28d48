from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.reporting import latex

NASTY = (
    r"""50% of a_b & #1 ~ {x} ^ $ \ | < > “é” → ± − – × Δ ≤ ≥ · ’ … † " « Å ł ß ñ „ € ½ 1° λ © 🙂 ą Ж β₁ ⌈Ω⌉ ≠∞∈←↔√"""
)
CHINESE = "“中文”，GPU 与 50% 的译文。"


def test_escape():
    assert latex.escape("a_b & 50%") == r"a\_b \& 50\%"
    assert latex.escape("En→Zh −1") == r"En$\to$Zh $-$1"
    assert latex.escape("0.1 ± 0.2") == r"0.1\,$\pm$\,0.2"
    assert latex.escape("* [0]†") == r"{*} {[}0]$^{\dagger}$"
    assert latex.escape('"n/a" ("x")') == "``n/a'' (``x'')"
    assert latex.escape("β₁ ⌊λ⌋") == r"$\beta$$_{1}$ $\lfloor$$\lambda$$\rfloor$"
    assert latex.escape("\\{}") == r"\textbackslash{}\{\}"


@given(st.text(st.sampled_from("ab&%$#_{}~^\\|<>"), max_size=20))
def test_no_special_character_is_left_bare(text):
    bare = re.sub(r"\\text[a-z]+\{\}|\\[&%$#_{}]", "", latex.escape(text))
    assert not set(bare) & set("&%$#_{}~^\\|<>")


def test_what_no_font_has_prints_as_its_code_point():
    assert latex.escape("a🙂b\u200b") == r"a\texttt{U+1F642}b"


def test_chinese_has_its_own_font_and_the_rest_does_not():
    assert latex.escape("GPU 译文。") == r"GPU \begin{CJK*}{UTF8}{gbsn}译文。\end{CJK*}"


def test_chinese_that_its_font_has_not_prints_as_its_code_point():
    """The font has simplified characters. LaTeX would leave the others out, with a line in its log alone."""
    assert latex.escape("点點") == r"\begin{CJK*}{UTF8}{gbsn}点\end{CJK*}\texttt{U+9EDE}"


def test_signatures_may_break_behind_separators():
    assert latex.code("tok:zh|v") == r"\texttt{tok:\allowbreak{}zh\textbar{}\allowbreak{}v}"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("+0.0172 [−0.0021, +0.04], p < 0.005", ["+0.0172", "[−0.0021,\u00a0+0.04],", "p\u00a0<\u00a00.005"]),
        ("a, b [CI]", ["a,", "b", "[CI]"]),
        ("译文 x", ["译", "文", "x"]),
    ],
)
def test_where_lines_may_break(text, pieces):
    assert latex.words(latex.in_one_piece(text)) == pieces
