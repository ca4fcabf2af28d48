"""Tatoeba sentence pairs: short human sentences, split so that nothing held out is seen in training."""

from __future__ import annotations

import hashlib
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import files
from entropy_valley.corpus.sampling import Pair, rank
from entropy_valley.errors import InputError

RELEASE = "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses"


@dataclass(frozen=True)
class Tatoeba:
    """``folder`` holds ``en-de.tsv``, ``en-zh.tsv``, …: a pair a line, the sides in the order of the name.

    Without a folder the pinned OPUS release is downloaded once into ``$ENTROPY_VALLEY_CACHE`` (by default
    ``~/.cache/entropy-valley``). ``held_out`` is the share of the sentences of the first column that goes to test,
    and as much again to dev.
    """

    folder: str | None = None
    held_out: float = 0.02

    splits = True
    endless = False

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """The pairs of one split; test and dev have one pair for each source sentence.

        A split belongs to a sentence of the file's first column, by its hash, so it is the same for both
        directions. A pair that shares either side with a held-out pair is not in train, nor in dev where that
        pair is a test pair.
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

    def _split_of(self, sentence: str) -> str:
        place = int.from_bytes(hashlib.blake2b(sentence.encode(), digest_size=8).digest()) / 2**64
        return "test" if place < self.held_out else "dev" if place < 2 * self.held_out else "train"

    def _read(self, direction: str) -> tuple[list[Pair], bool]:
        """The rows of the direction's file in its own column order, and whether the direction is the other way."""
        languages = direction.split("-")
        if not self.folder:
            return _downloaded(sorted(languages)), languages != sorted(languages)
        straight, reverse = (Path(self.folder, f"{a}-{b}.tsv") for a, b in (languages, languages[::-1]))
        path = straight if straight.exists() or not reverse.exists() else reverse
        return [_columns(path, number, line) for number, line in enumerate(files.read_lines(path), 1)], path == reverse


def _columns(path: Path, number: int, line: str) -> Pair:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) < 2 or not cells[0] or not cells[1]:
        raise InputError(
            f"{path}:{number}",
            f"not two sentences and a tab between: {line[:60]!r}",
            "Each line must be: source, tab, target.",
        )
    return cells[0], cells[1]


def _sides(rows: list[Pair], splits: list[str], names: tuple[str, ...]) -> tuple[set[str], set[str]]:
    chosen = [row for row, name in zip(rows, splits, strict=True) if name in names]
    return {first for first, _ in chosen}, {second for _, second in chosen}


def _one_per_source(pairs: list[Pair], seed: int) -> list[Pair]:
    chosen: dict[str, Pair] = {}
    for pair in sorted(pairs, key=lambda pair: rank(pair, seed)):
        chosen.setdefault(pair[0], pair)
    return list(chosen.values())


def _downloaded(languages: list[str]) -> list[Pair]:
    name = "-".join(languages)
    archive = files.cache_folder() / f"tatoeba-{name}.zip"
    if not archive.exists():
        _download(f"{RELEASE}/{name}.txt.zip", archive)
    try:
        with zipfile.ZipFile(archive) as opened:
            sides = [opened.read(f"Tatoeba.{name}.{one}").decode("utf-8").splitlines() for one in languages]
    except (zipfile.BadZipFile, KeyError):
        raise InputError(archive, "not the archive of a Tatoeba release", "Delete this file and run again.") from None
    return [(first.strip(), second.strip()) for first, second in zip(*sides, strict=True)]


def _download(address: str, archive: Path) -> None:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content = answer.read()
    except OSError as error:
        raise InputError(
            address,
            f"cannot be downloaded ({error})",
            "Set the source's folder to one that holds en-de.tsv or the like (source, tab, target), or "
            f"copy the archive from another machine to {archive}.",
        ) from None
    with files.atomic(archive) as temporary:
        temporary.write_bytes(content)
