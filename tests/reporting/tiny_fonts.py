"""Fonts of a few characters, each a square, in the place of those that are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from entropy_valley import fonts


def write(path: Path, name: str, characters: str) -> Path:
    """A TrueType font with these characters."""
    pen = TTGlyphPen(None)
    for at, point in enumerate([(0, 0), (0, 700), (700, 700), (700, 0)]):
        (pen.lineTo if at else pen.moveTo)(point)
    pen.closePath()
    names = {character: f"u{ord(character):04X}" for character in characters}
    glyphs = [".notdef", *names.values()]
    font = FontBuilder(1000)
    font.setupGlyphOrder(glyphs)
    font.setupCharacterMap({ord(character): glyph for character, glyph in names.items()})
    font.setupGlyf(dict.fromkeys(glyphs, pen.glyph()))
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (800, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": name, "styleName": "Regular", "psName": name.replace(" ", "")})
    font.setupOS2()
    font.setupPost()
    font.save(path)
    return path


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Give a name and characters of each font that is installed beside matplotlib's own."""
    own = [face for face in font_manager.fontManager.ttflist if "mpl-data" in face.fname]

    def install(**faces: str) -> None:
        paths = [str(write(tmp_path / f"{name}.ttf", name.replace("_", " "), text)) for name, text in faces.items()]
        monkeypatch.setattr(font_manager.fontManager, "ttflist", [*own])
        monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [*paths, str(tmp_path / "gone.ttf")])
        fonts.covering.cache_clear()

    yield install
    fonts.covering.cache_clear()
    font_manager.fontManager._findfont_cached.cache_clear()
