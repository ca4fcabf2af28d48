"""The table and the figure of the cases."""

from __future__ import annotations

import warnings

import pytest
from fake_texts import write_cases
from fontTools.ttLib import TTFont
from making import drawn, made
from matplotlib import font_manager

from entropy_valley.tables import style
from entropy_valley.tables.cases import CHINESE, LEFT_OUT, NO_FONT, Cases, CasesFigure, chinese_fonts, wrapped


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


@pytest.fixture
def no_chinese_font(monkeypatch):
    """A machine whose fonts are those that matplotlib brings."""
    monkeypatch.setenv("MPL_IGNORE_SYSTEM_FONTS", "1")
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [font for font in manager.ttflist if font.name not in CHINESE])


def test_without_a_chinese_font_the_figure_and_the_log_say_what_to_install(params, tmp_path, no_chinese_font, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a character without a glyph is one
        figure, _ = drawn(CasesFigure, params)
        style.save(figure, pdf=tmp_path / "cases.pdf", png=tmp_path / "cases.png")
    printed = texts(figure.axes[0])
    assert printed[-2:] == [*NO_FONT] and printed.count(LEFT_OUT) == 3 * 3
    assert "#PRS_ORG# calls." in printed
    assert "fonts-noto-cjk" in capsys.readouterr().err


def test_a_text_without_chinese_needs_no_chinese_font(tmp_path, no_chinese_font, capsys):
    german = {"reference": "Neustart.", "ratio": ("Start.", 0.5), "ev": ("Neustart.", 0.9)}
    figure, _ = drawn(CasesFigure, write_cases(tmp_path, german))
    assert "Neustart." in texts(figure.axes[0]) and NO_FONT[0] not in texts(figure.axes[0])
    assert not capsys.readouterr().err


def test_a_chinese_font_that_was_installed_later_is_taken(tmp_path, no_chinese_font, monkeypatch):
    """Matplotlib's list of fonts, which it keeps in a file, does not have it yet; nor what is no font."""
    font = TTFont(font_manager.findfont("DejaVu Sans"))
    for record in font["name"].names:
        font["name"].setName(CHINESE[0], *(record.nameID, record.platformID, record.platEncID, record.langID))
    font.save(tmp_path / "font.ttf")
    (tmp_path / "none.ttf").write_bytes(b"none")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(path) for path in tmp_path.glob("*.ttf")])
    assert chinese_fonts() == [CHINESE[0]]


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
