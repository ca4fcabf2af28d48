"""The table and the figure of the cases."""

from __future__ import annotations

import warnings

import pytest
from fake_texts import write_cases
from making import drawn, made
from matplotlib import font_manager

from entropy_valley.tables import style
from entropy_valley.tables.cases import CHINESE, Cases, CasesFigure, wrapped


@pytest.fixture
def params(tmp_path):
    win = {"ratio": ("时间", 0.25), "ev": ("点击重置。", 0.75)}
    kept = {"source": "#PRS_ORG# calls.", "ratio": ("打。", 0.5), "ev": ("#PRS_ORG#打。", 0.5625)}
    return write_cases(tmp_path, {}, win, kept, {"ev": ("重", 0.375), "true": 12})


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_case_that_there_is_not_is_said(tmp_path):
    params = write_cases(tmp_path, {})
    table, _ = made(Cases, params)
    absent = [note.text for note in table.notes if note.text.endswith("there is no such sentence.")]
    assert (len(absent), table.sections) == (3, ())
    (axes,) = drawn(CasesFigure, params)[0].axes
    assert texts(axes) == absent


@pytest.mark.skipif(not {*CHINESE} & {*font_manager.get_font_names()}, reason="no Chinese font on this machine")
def test_chinese_has_glyphs(params, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a character without a glyph is one
        style.save(drawn(CasesFigure, params)[0], pdf=tmp_path / "cases.pdf", png=tmp_path / "cases.png")


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
    assert wrapped(text, 8, 2) == lines


def test_a_long_text_is_cut_in_the_figure_alone(tmp_path):
    params = write_cases(tmp_path, {"source": "word " * 60, "ev": ("x", 0.75)})
    figure, _ = drawn(CasesFigure, params)
    assert any(text.endswith("…") for text in texts(figure.axes[0]))
    assert made(Cases, params)[0].sections[0].groups[0].rows[0].cells[0].text == "word " * 60
    higher, _ = drawn(CasesFigure, write_cases(tmp_path, {"ev": ("x", 0.75)}))
    assert figure.get_figheight() >= higher.get_figheight()
