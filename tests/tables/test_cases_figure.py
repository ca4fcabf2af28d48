"""The figure of the cases: Chinese texts, with and without a font, and texts that are too long."""

import re
import warnings

import pytest
from matplotlib import font_manager

from entropy_valley.experiment.tables import style
from entropy_valley.experiment.tables.cases import _WIDE, CHINESE, wrapped

NAME = "figures/cases"


def drawn(run, folder):
    """The texts of the figure, as it is saved; a character without a glyph is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = run.figure(NAME)
        style.save(figure, {kind: folder / f"cases.{kind}" for kind in style.UNDATED})
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.skipif(not {*CHINESE} & {*font_manager.get_font_names()}, reason="no Chinese font on this machine")
def test_chinese_has_glyphs(run, tmp_path):
    assert re.search(_WIDE, "".join(drawn(run, tmp_path)))


@pytest.fixture
def no_chinese_font(monkeypatch):
    """A machine whose fonts are those that matplotlib brings."""
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [font for font in manager.ttflist if font.name not in CHINESE])


def test_without_a_chinese_font_matplotlib_warns(run, no_chinese_font):
    with pytest.warns(UserWarning, match="Glyph"):
        run.make(NAME)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("点击重置。", ["点击重", "置。"]),
        ("点击重。置", ["点击重。", "置"]),
        ("abcdefghij", ["abcdefgh", "ij"]),
        ("aa bb cc dd ee ff gg", ["aa bb cc", "dd ee…"]),
        ("", [""]),
    ],
)
def test_lines_are_broken_at_words_and_between_chinese_characters(text, lines):
    assert wrapped(text, 8, 2) == lines
