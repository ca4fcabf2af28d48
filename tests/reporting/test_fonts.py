"""Fonts are found by the characters that they have; what none has is said in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entropy_valley.fonts import covering, plain, wrapped

OWN = "DejaVu Sans"


def test_the_figures_own_font_is_enough_for_what_it_has(install, capsys):
    install(Some_SC="点")
    assert covering("Größe – αβγ #PRS_ORG#", OWN).families == [OWN]
    assert capsys.readouterr().err == ""


def test_a_font_is_found_by_its_characters(install, capsys):
    install(Half_SC="点", Whole="点击。", Whole_SC="点击。", Serif_SC="点击。", Mono_SC="点击。")
    font = covering("Tap 点击。", OWN)
    assert font.families == [OWN, "Whole SC"]
    assert font.printable("Tap 点击。") == "Tap 点击。"
    assert capsys.readouterr().err == ""


def test_several_fonts_may_be_needed(install):
    install(Most_SC="点击", Rest="。")
    assert covering("点击。", OWN).families == [OWN, "Most SC", "Rest"]


def test_what_no_font_has_is_said_and_no_font_of_boxes_is_taken(install, capsys):
    """Matplotlib brings one that has a box for every character."""
    install(Half_SC="点")
    font = covering("点击。ok", OWN)
    assert (font.families, font.lacking) == ([OWN, "Half SC"], {"击", "。"})
    assert font.printable("点击。ok 击") == "点[2 characters without a font]ok [1 character without a font]"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: no installed font has 。 击 (2 characters)")
    assert "apt-get install fonts-noto-cjk" in line


def test_white_space_and_marks_that_print_nothing_ask_for_no_font():
    assert plain("a\u3000b\u200b\tc\n") == "a b c"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("点击重置。", ["点击重", "置。"]),
        ("点击重。置", ["点击重。", "置"]),
        ("abcdefghij", ["abcdefgh", "ij"]),
        ("aa bb cc dd ee ff gg", ["aa bb cc", "dd ee f…"]),
        ("", [""]),
    ],
)
def test_lines_are_broken_at_words_and_between_chinese_characters(text, lines):
    assert wrapped(text, 8, 2)[:1] == lines[:1]
    assert wrapped(text, 8, 2) == lines


@given(st.text("ab 点。", max_size=60).map(plain))
def test_nothing_is_lost_where_there_are_lines_enough(text):
    lines = wrapped(text, 7, 100)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(sum(1 + (character in "点。") for character in line.rstrip("。")) <= 7 for line in lines)
