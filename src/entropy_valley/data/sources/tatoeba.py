"""Tatoeba: short sentences translated by people, split so that training sees no held-out sentence."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from entropy_valley import files
from entropy_valley.data.sampling import Pair, rank
from entropy_valley.data.sources.base import Source
from entropy_valley.errors import InputError

MOST = 2**31  # bytes of a text in an archive; the release's largest has 50 MB
RELEASE = "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses"


class Tatoeba(Source):
    """Tatoeba sentence pairs. Without a folder, the pinned OPUS release is downloaded once into the cache."""

    splits: ClassVar[bool] = True

    name: Literal["tatoeba"] = Field(description="the kind of source")
    folder: str | None = Field(None, description="holds en-de.tsv and the like: source, tab, target on each line")
    held_out: float = Field(0.02, gt=0, lt=0.5, description="share of first-column sentences in test, and in dev")

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """The pairs of one split; test and dev have one pair for each source sentence.

        The hash of the first column's sentence decides the split, so both directions have the same one. Train has no
        side of a dev or test pair, dev no side of a test pair.
        """
        rows, swapped = self._read(direction)
        splits = [self._split_of(first) for first, _ in rows]
        tested = _sides(rows, splits, ("test",))
        taken = {"test": (set(), set()), "dev": tested, "train": _sides(rows, splits, ("test", "dev"))}[split]
        kept = [
            row
            for row, name in zip(rows, splits, strict=True)
            if name == split and row[0] not in taken[0] and row[1] not in taken[1]
        ]
        pairs = [(second, first) for first, second in kept] if swapped else kept
        return iter(pairs if split == "train" else _one_per_source(pairs, seed))

    def origin(self, direction: str, *splits: str) -> dict[str, Any]:
        languages = direction.split("-")
        return {"files": files.digests([self._file(languages)[0] if self.folder else _archive(sorted(languages))])}

    def _split_of(self, sentence: str) -> str:
        uniform = int.from_bytes(hashlib.blake2b(sentence.encode(), digest_size=8).digest()) / 2**64
        return "test" if uniform < self.held_out else "dev" if uniform < 2 * self.held_out else "train"

    def _read(self, direction: str) -> tuple[list[Pair], bool]:
        """The rows of the direction's file, and whether its columns are target and source."""
        languages = direction.split("-")
        if not self.folder:
            return _downloaded(sorted(languages)), languages != sorted(languages)
        path, swapped = self._file(languages)
        return [_columns(path, number, line) for number, line in enumerate(files.read_lines(path), 1)], swapped

    def _file(self, languages: list[str]) -> tuple[Path, bool]:
        """The file of a direction, and whether it is that of the reverse."""
        straight, reverse = (Path(self.folder, f"{a}-{b}.tsv") for a, b in (languages, languages[::-1]))
        swapped = reverse.exists() and not straight.exists()
        return (reverse if swapped else straight), swapped


def _columns(path: Path, number: int, line: str) -> Pair:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) < 2 or not cells[0] or not cells[1]:
        raise InputError(
            f"{path}:{number}",
            f"not two sentences with a tab between them: {line[:60]!r}",
            "Each line must be: source, tab, target.",
        )
    return files.sentence(f"{path}:{number}", cells[0]), files.sentence(f"{path}:{number}", cells[1])


def _sides(rows: list[Pair], splits: list[str], names: tuple[str, ...]) -> tuple[set[str], set[str]]:
    chosen = [row for row, name in zip(rows, splits, strict=True) if name in names]
    return {first for first, _ in chosen}, {second for _, second in chosen}


def _one_per_source(pairs: list[Pair], seed: int) -> list[Pair]:
    chosen: dict[str, Pair] = {}
    for pair in sorted(pairs, key=lambda pair: rank(pair, seed)):
        chosen.setdefault(pair[0], pair)
    return list(chosen.values())


def _downloaded(languages: list[str]) -> list[Pair]:
    name, archive = "-".join(languages), _archive(languages)
    try:
        with zipfile.ZipFile(archive) as opened:
            sides = [_side(opened, f"Tatoeba.{name}.{one}").splitlines() for one in languages]
    except (zipfile.BadZipFile, KeyError):
        raise InputError(archive, "not an archive of the Tatoeba release", "Delete this file and run again.") from None
    if len(sides[0]) != len(sides[1]):
        raise InputError(archive, "its two texts differ in their lines", "Delete this file and run again.")
    return [(first.strip(), second.strip()) for first, second in zip(*sides, strict=True)]


def _side(opened: zipfile.ZipFile, name: str) -> str:
    """A text of an archive, unless it is beyond all measure: a small archive may hold one of terabytes."""
    if opened.getinfo(name).file_size > MOST:
        raise zipfile.BadZipFile
    return opened.read(name).decode("utf-8")


def _archive(languages: list[str]) -> Path:
    """The archive of a release, downloaded where it is not in the cache."""
    from entropy_valley import hub  # only a download takes huggingface_hub, which loads slowly

    name = "-".join(languages)
    archive = files.cache_folder() / f"tatoeba-{name}.zip"
    remedy = (
        "Set the source's folder to one that holds en-de.tsv or the like (source, tab, target), or "
        f"copy the archive from another machine to {archive}."
    )
    hub.archive(f"{RELEASE}/{name}.txt.zip", archive, remedy)
    return archive
