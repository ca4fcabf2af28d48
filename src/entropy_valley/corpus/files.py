"""Two text files, a sentence a line: the user's own corpus, and the layout of most test sets."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import files
from entropy_valley.corpus.sampling import Pair
from entropy_valley.errors import InputError


def read_parallel(source: str | Path, reference: str | Path) -> list[Pair]:
    """The pairs of two files of equal length; an empty file, a blank line or unequal lengths is an InputError."""
    sources, references = _sentences(source), _sentences(reference)
    if len(sources) != len(references):
        short, long = sorted(((len(sources), source), (len(references), reference)), key=lambda item: item[0])
        raise InputError(
            f"{long[1]}:{short[0] + 1}",
            f"{long[0]} lines, but {short[1]} has {short[0]}",
            "Line n of one file must translate line n of the other.",
        )
    return list(zip(sources, references, strict=True))


def _sentences(path: str | Path) -> list[str]:
    lines = [line.strip() for line in files.read_lines(path)]
    for number, line in enumerate(lines, 1):
        if not line:
            raise InputError(f"{path}:{number}", "blank line", "Remove this line from both files, or fill it.")
    return lines
