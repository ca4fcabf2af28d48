"""Plain text as LaTeX that pdflatex sets with its standard fonts, and how wide it is."""

from __future__ import annotations

import itertools
import re
import unicodedata

PACKAGES = ("booktabs", "multirow", "colortbl", "adjustbox")  # what the fragments of reporting.tables need
CHINESE = "CJKutf8"  # and where there is Chinese text
FONT = "gbsn"  # the Chinese font, of Debian's latex-cjk-chinese and of TeX Live's collection-langchinese

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "|": r"\textbar{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "*": "{*}", "[": "{[}",  # the last two: else of the line before
    "→": r"$\to$", "±": r"$\pm$", "−": r"$-$", "×": r"$\times$", "·": r"$\cdot$", "≤": r"$\leq$", "≥": r"$\geq$",
    "≈": r"$\approx$", "≠": r"$\neq$", "∞": r"$\infty$", "∈": r"$\in$", "←": r"$\gets$", "↔": r"$\leftrightarrow$",
    "⌊": r"$\lfloor$", "⌋": r"$\rfloor$", "⌈": r"$\lceil$", "⌉": r"$\rceil$", "√": r"$\surd$",
    "µ": r"$\mu$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "°": r"$^{\circ}$",
    "²": "$^{2}$", "³": "$^{3}$", "½": "1/2", "•": r"$\bullet$", "–": "--", "—": "---", "…": r"\dots{}",
    "“": "``", "”": "''", "„": ",,", '"': "''", "‘": "`", "’": "'", "‚": ",", "«": r"$\ll$", "»": r"$\gg$",
    "€": r"\texteuro{}", "£": r"\pounds{}", "©": r"\copyright{}", "®": r"\textregistered{}", "™": r"\texttrademark{}",
    "\u00a0": "~", "\u2009": r"\,",
}  # fmt: skip
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_SPECIAL |= {
    letter: rf"$\{name}$" for letter, name in zip("αβγδεζηθικλμνξπρστφχψωΓΔΘΛΞΠΣΦΨΩ", _GREEK.split(), strict=True)
}
_SPECIAL |= {digit: f"$_{{{number}}}$" for number, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_LETTERS = set("ßæøœłÆØŒŁ¡¿§¶")
_ACCENTS = set("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
_CHINESE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"  # characters and punctuation, as wide as a square
_ONE_PIECE = re.compile(r" (?=[±<=>≤≥] )|(?<= [±<=>≤≥]) |(?<=,) (?=[^\s\[\]]+\])")
_WIDTHS = (("il.,:;|'’‘!()[] ", 2.6), ("mwMW±−→×<>=%—", 6.8))  # points at 8 pt; other capitals 5.8, the rest 4.3


def escape(text: str) -> str:
    """Text with every special character escaped, the known symbols as mathematics, and Chinese in its own font.

    Chinese needs the package :data:`CHINESE`. What none of these fonts has prints as its code point: U+1F600.
    """
    text = re.sub(r"\s±\s", "\u2009±\u2009", re.sub(r'(^|[\s(])"', r"\1“", text))
    pieces = re.split(f"({_CHINESE}+)", text)
    return "".join(_chinese(piece) if number % 2 else _latin(piece) for number, piece in enumerate(pieces))


def code(text: str) -> str:
    """A signature in typewriter type that may break behind its separators."""
    pieces = re.split(r"(?<=[|:,;/=])", text)
    broken = r"\allowbreak{}".join(map(escape, pieces))
    return rf"\texttt{{{broken}}}"


def in_one_piece(text: str) -> str:
    """Text whose numbers are not broken over lines: ``0.85 ± 0.01``, ``p < 0.01`` and ``[−0.1, +0.2]``."""
    return _ONE_PIECE.sub("\u00a0", text)


def is_chinese(text: str) -> bool:
    """Whether there is a character that needs the package :data:`CHINESE`."""
    return bool(re.search(_CHINESE, text))


def words(text: str) -> list[str]:
    """The pieces that stand on one line: words, and each character of Chinese."""
    return re.findall(rf"{_CHINESE}|(?:(?!{_CHINESE})[^ \n])+", text)


def width(text: str) -> float:
    """About how wide a line is in ``\\footnotesize``, in points."""
    return sum(map(_width, text))


def _chinese(text: str) -> str:
    """In the Chinese font, which has the characters of GB 2312, the simplified ones; it leaves a gap for any other."""
    runs = ((known, "".join(run)) for known, run in itertools.groupby(text, _in_font))
    set_so = rf"\begin{{CJK*}}{{UTF8}}{{{FONT}}}%s\end{{CJK*}}"
    return "".join(set_so % run if known else "".join(map(_code_point, run)) for known, run in runs)


def _in_font(character: str) -> bool:
    try:
        return bool(character.encode("gb2312"))
    except UnicodeEncodeError:
        return False


def _code_point(character: str) -> str:
    return rf"\texttt{{U+{ord(character):04X}}}"


def _latin(text: str) -> str:
    return "".join(map(_character, text))


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character in _LETTERS or (character.isascii() and character.isprintable()):
        return character
    if character.isspace():
        return " "
    base, accents = (composed := unicodedata.normalize("NFD", character))[0], composed[1:]
    if base.isascii() and len(accents) == 1 and accents in _ACCENTS:
        return character
    return "" if unicodedata.category(character) == "Cf" else _code_point(character)


def _width(character: str) -> float:
    if re.match(_CHINESE, character):
        return 8
    known = next((points for characters, points in _WIDTHS if character in characters), None)
    return known or (5.8 if character.isupper() else 4.3)
