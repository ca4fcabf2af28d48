"""Plain text as LaTeX that pdflatex sets with its standard fonts."""

from __future__ import annotations

import re

from entropy_valley.errors import InputError

PACKAGES = ("booktabs", "multirow", "colortbl")  # what the fragments of reporting.tables need

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "|": r"\textbar{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "→": r"$\to$", "±": r"$\pm$", "−": r"$-$", "–": "--", "×": r"$\times$", "Δ": r"$\Delta$",
    "≤": r"$\leq$", "≥": r"$\geq$", "·": r"$\cdot$", "“": "``", "”": "''", "’": "'", "…": r"\dots{}",
    "ρ": r"$\rho$", "†": r"$^{\dagger}$", "*": "{*}", "[": "{[}",  # the last two: else of the line before
}  # fmt: skip


def escape(text: str) -> str:
    """Text with every special character escaped and the known symbols as mathematics.

    Accented Latin letters pass as they are (UTF-8 is LaTeX's default). Raises :class:`InputError` for what pdflatex
    has no glyph for, such as Chinese.
    """
    return "".join(_character(character, text) for character in text)


def code(text: str) -> str:
    """A signature in typewriter type that may break behind its separators."""
    pieces = re.split(r"(?<=[|:,;/=])", text)
    broken = r"\allowbreak{}".join(map(escape, pieces))
    return rf"\texttt{{{broken}}}"


def _character(character: str, text: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character.isprintable() and ord(character) < 0x180:  # ASCII and the Latin supplements
        return character
    remedy = "Use Latin letters in the labels of config.yaml."
    raise InputError(repr(text), f"pdflatex cannot set {character!r}", remedy)
