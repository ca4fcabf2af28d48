"""Fonts that have all characters of a text, so that a figure or page prints no empty boxes in their place.

The figures' own font has Latin, Greek and Cyrillic letters. For others, such as Chinese, an installed font is found by
the characters that it has. What no font has, the figure says in words.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from entropy_valley.late import font_manager, ft2font

if TYPE_CHECKING:
    from matplotlib.font_manager import FontEntry

INSTALL = "For Chinese, install one (Debian: apt-get install fonts-noto-cjk), and make the figure again"
_BOXES = re.compile("Last ?Resort|BMP Fallback")  # fonts that have a box for every character; matplotlib brings one
_WIDE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"  # Chinese characters and punctuation
_CLOSING = "，。、；：？！」』）》”’"  # begin no line
_SIMPLIFIED = re.compile(r"\b(SC|CN|GB)\b")  # in the names of fonts that come in a version for each region


@dataclass(frozen=True)
class Fonts:
    """``families``, for the ``fontfamily`` of texts, their files with the face there, and what none of them has."""

    families: list[str]
    files: list[tuple[str, int]]
    lacking: frozenset[str]

    def printable(self, text: str) -> str:
        """The text, with a word in the place of what no font has: ``[5 characters without a font]``."""
        pieces = re.split(f"([{re.escape(''.join(self.lacking))}]+)" if self.lacking else "(?!)", plain(text))
        return "".join(_words(piece) if number % 2 else piece for number, piece in enumerate(pieces))


@functools.cache
def covering(text: str, own: str) -> Fonts:
    """Font ``own``, and behind it installed ones that have what it lacks of the text, as far as any has.

    Of several that have equally many characters, the first is one for simplified Chinese, of regular weight and
    without serifs. If characters are left over, a line on stderr says what to install.
    """
    families, files = [own], [(font_manager.findfont(own), 0)]
    missing = _lacking(*files[0], set(plain(text)))
    faces = _installed() if missing else []
    while faces and missing:
        best = min(faces, key=lambda face: (len(_lacking(face.fname, face.index, missing)), *_preference(face)))
        left = _lacking(best.fname, best.index, missing)
        if left == missing:
            break
        families.append(best.name)
        files.append((best.fname, best.index))
        missing = left
    if missing:
        some = " ".join(sorted(missing)[:10]) + (" …" if len(missing) > 10 else "")
        print(f"warning: no installed font has {some} ({len(missing)} characters). {INSTALL}", file=sys.stderr)
    return Fonts(families, files, frozenset(missing))


def plain(text: str) -> str:
    """The text without control and formatting characters, each kind of white space as a space."""
    kinds = ((character, unicodedata.category(character)) for character in " ".join(text.split()))
    return "".join(" " if kind == "Zs" else character for character, kind in kinds if kind not in ("Cc", "Cf"))


def _installed() -> list[FontEntry]:
    """The faces of all installed fonts, also of those that matplotlib's list of fonts does not have yet."""
    manager = font_manager.fontManager
    for path in sorted(set(font_manager.findSystemFonts()) - {face.fname for face in manager.ttflist}):
        try:
            manager.addfont(path)
        except (OSError, RuntimeError):  # no font after all
            continue
    return [face for face in manager.ttflist if not _BOXES.search(face.name)]


def _lacking(path: str, face: int, characters: set[str]) -> set[str]:
    """The characters that a face has no glyph for."""
    try:
        font = ft2font.FT2Font(path, face_index=face)
    except (OSError, RuntimeError):  # removed since matplotlib listed it
        return characters
    return {character for character in characters if not font.get_char_index(ord(character))}


def _preference(face: FontEntry) -> tuple[object, ...]:
    """The lower, the better."""
    other = any(word in face.name for word in ("Mono", "Serif"))
    return (
        not _SIMPLIFIED.search(face.name),
        other,
        face.style != "normal",
        abs(font_manager.weight_dict.get(face.weight, face.weight) - 400),
        face.name,
    )


def _words(characters: str) -> str:
    return f"[{len(characters)} character{'s' if len(characters) > 1 else ''} without a font]"


def wrapped(text: str, columns: int, lines: int) -> list[str]:
    """Text in lines of so many Latin letters; Chinese may break anywhere, and is twice as wide. What is left is cut."""
    found, room = [""], columns
    for piece in re.findall(rf"(?:{_WIDE}|(?:(?!{_WIDE})\S){{1,{columns}}})[{_CLOSING}]*\s*", text):
        width = sum(2 if re.match(_WIDE, character) else 1 for character in piece.rstrip())
        if width > room and found[-1]:
            found, room = [*found, ""], columns
        found[-1] += piece
        room -= width + len(piece) - len(piece.rstrip())
    shown = [line.rstrip() for line in found[:lines]]
    return shown if len(found) <= lines else [*shown[:-1], f"{shown[-1][: columns - 1]}…"]
