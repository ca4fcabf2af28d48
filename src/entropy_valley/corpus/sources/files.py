"""Two text files with one sentence per line: a user's own corpus, and the layout of most test sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from entropy_valley import files, plain_text
from entropy_valley.corpus.sampling import Pair
from entropy_valley.corpus.sources.base import Source
from entropy_valley.errors import InputError, listed


class Files(Source):
    """Two text files of the user's own, one sentence per line."""

    name: Literal["files"] = Field(description="the kind of source")
    source: str = Field(description="the file of source sentences, UTF-8")
    target: str = Field(description="the file of target sentences; line n translates line n of the other file")

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        return iter(read_parallel(self.source, self.target))

    def own_files(self, direction: str, *splits: str) -> list[str]:
        return [self.source, self.target]


def read_parallel(source: str | Path, reference: str | Path) -> list[Pair]:
    """The pairs of two files.

    Raises InputError for an empty file, a line that is no sentence, files of unequal length, and equal ones.
    """
    sources, references = _sentences(source), _sentences(reference)
    if len(sources) != len(references):
        short, long = sorted(((len(sources), source), (len(references), reference)), key=lambda item: item[0])
        raise InputError(
            f"{long[1]}:{short[0] + 1}",
            f"{long[0]} lines, but {short[1]} has {short[0]}",
            "Line n of one file must translate line n of the other.",
        )
    if sources == references:
        raise InputError(reference, f"has the sentences of {source}", "Name a file of their translations.")
    return list(zip(sources, references, strict=True))


def _sentences(path: str | Path) -> list[str]:
    lines = files.read_lines(path)
    if 2 * sum("\t" in line for line in lines) > len(lines):
        raise InputError(path, "most of its lines have tabs: a table, not sentences", "Give a file for each side.")
    sentences = [plain_text.sentence(f"{path}:{number}", line) for number, line in enumerate(lines, 1)]
    if blank := [str(number) for number, sentence in enumerate(sentences, 1) if not sentence]:
        many = f"{len(blank)} blank lines: {listed(blank)}"
        remedy = "Remove such lines from both files, or fill them."
        raise InputError(f"{path}:{blank[0]}", many if len(blank) > 1 else "blank line", remedy)
    return sentences
