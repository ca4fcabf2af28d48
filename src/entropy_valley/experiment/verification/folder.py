"""A folder of results as a stranger gets it: its records and rows; and the report of what was compared."""

import contextlib
import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from entropy_valley import files, shipped
from entropy_valley.decoding.requests import Denoising
from entropy_valley.errors import InputError, listed
from entropy_valley.model.checkpoint import load_tokenizer
from entropy_valley.model.families import find_family
from entropy_valley.model.prompt import Prompt
from entropy_valley.results import (
    CONFIG,
    ENDING,
    HEADERS,
    TRANSLATIONS,
    Difference,
    Record,
    System,
    entries,
    moved,
    read_record,
    record_path,
    require_sound,
)
from entropy_valley.texts import shown

SKIPPED = ("store", "work", "logs")  # folders of the results that no table reads
FILES = "records and the files in them"  # a part of the report
MOST_BYTES = 2**31  # of a file of rows
HEADER = record_path(TRANSLATIONS).name
REMEDY = "Get the file again from where the folder comes from, or make the result again."
Row = Mapping[str, Any]  # of a file of rows, with its ``line``


# --- The report.


class Unchecked(NamedTuple):
    """In the place of a value that follows: why there is none."""

    reason: str


@dataclass
class Report:
    """What was compared, by part: how many values are the same, which differ, and why others could not be checked."""

    same: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[str, str]] = field(default_factory=list)  # the part, and a line that begins with the file
    unchecked: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def compare(self, part: str, file: object, place: str, stored: Any, follows: Any, within: float = 0.0) -> None:
        """Compare two values; numbers may differ by ``within``, and in the last of ten digits."""
        both = (stored, follows)
        numbers = all(isinstance(value, int | float) for value in both)
        if isinstance(follows, Unchecked):
            self.unchecked[part][follows.reason] += 1
        elif math.isclose(*both, rel_tol=1e-9, abs_tol=within) if numbers else stored == follows:
            self.same[part] += 1
        else:
            self.differ(part, file, str(Difference(place, *both)))

    def differ(self, part: str, file: object, problem: str) -> None:
        self.differences.append((part, f"{file}: {shown(problem)}"))

    @contextlib.contextmanager
    def reading(self, part: str, file: object) -> Iterator[None]:
        """What the block cannot read is a difference, and what comes after the block is still checked."""
        try:
            with files.readable(str(file), "result", REMEDY):
                yield
        except InputError as error:
            self.differ(part, file, f"cannot be checked: {' '.join(str(error).split())}")


# --- The folder.


@dataclass
class Cell:
    """What a ``file`` of a set has of a cell; ``home`` is the folder of the set. ``entry`` and ``params`` are what the
    ``header`` beside the file says of the cell and of the set."""

    home: str
    direction: str
    backbone: str
    file: str
    header: str
    system: System
    rows: Sequence[Row]
    entry: Mapping[str, Any]
    params: Mapping[str, Any]

    @functools.cached_property
    def denoising(self) -> Denoising | None:
        """The reveal order and its budget; None of an autoregressive system."""
        if not self.system.order:
            return None
        return Denoising.of({**self.params, **self.params["orders"][self.system.order], "steps": self.system.steps})


class Folder:
    """Headers by their place, such as ``corpus/en-zh/train.made.json``, and what they describe. Places are below
    ``root``. Of results that are in a folder of it, as results/demo is in results, the headers are read, too."""

    def __init__(self, root: Path, report: Report) -> None:
        self.root = root
        if not (root / CONFIG).is_file():
            others = sorted(str(path.parent) for path in root.glob(f"*/{CONFIG}"))
            such = f", such as {listed(others, 3)}" * bool(others)
            raise InputError(root / CONFIG, "file not found", f"Name the folder of the results of a run{such}.")
        self.records: dict[str, Record] = {}
        for path in sorted(root.rglob("*.json")):
            place = path.relative_to(root)
            # Hidden files are those that a writer has left.
            is_left_out = place.parts[0] in SKIPPED or any(part[0] == "." for part in place.parts)
            if not is_left_out and (path.name.endswith(ENDING) or path.name in HEADERS):
                with report.reading(FILES, place):
                    if record := read_record(path):
                        self.records[place.as_posix()] = record
        # `en-zh/llada-8b/seed1/matrix`
        places = [place for place in self.records if place.count("/") == 4 and place.endswith(HEADER)]
        self.sets = [place.removesuffix(f"/{HEADER}") for place in places]

    def check(self, report: Report) -> None:
        """Compare each header with the files that it describes, and with the headers of what these were made from."""
        sound: set[Path] = set()
        for place, record in self.records.items():
            # A header is named after the first output of its job.
            first = (self.root / place).with_name(PurePosixPath(record.path).name)
            with report.reading(FILES, place):
                # What is not there is no fault for Snakemake, which makes it again.
                for name in record.outputs:
                    if not (first.parent / name).is_file():
                        report.differ(FILES, place, f"{name} is not there")
                try:
                    require_sound(first, self.root, sound)
                    report.same[FILES] += 1
                except InputError as error:
                    report.differ(FILES, place, error.problem)

    def model(self, home: str) -> tuple[Path | None, Path | None]:
        """The checkpoint and the adapter that the translations of a set were made from, None for what is not here."""
        record = self.records[f"{home}/{HEADER}"]
        former = record.path.removesuffix(f"/{home}/{TRANSLATIONS}")
        # The checkpoint of a tiny model is wherever this package is installed.
        tiny = {one.origin["digest"]: one.checkpoint for one in shipped.MODELS.values()}
        checkpoint = adapter = None
        for path, digest in record.inputs.items():
            here = tiny.get(digest) or Path(moved(path, former, str(self.root)))
            if (here / "config.json").is_file():
                checkpoint = here
            elif (here / "adapter_config.json").is_file():
                adapter = here
        return checkpoint, adapter

    def cells(self, report: Report, name: str) -> Iterator[Cell]:
        """The cells of every set in its translations or scores."""
        for home in self.sets:
            file = f"{home}/{name}"
            header = record_path(file).as_posix()
            direction, backbone, _ = home.split("/", 2)
            with report.reading("rows", file):
                if record := self.records.get(header):
                    rows, described = self.rows(file), entries(self.root / header)
                    # A cell that lacks on one side is found here, before its rows are looked at.
                    report.compare("rows", file, "cells", sorted(rows), sorted(described))
                    for system, own in rows.items():
                        entry = described.get(system, {})
                        yield Cell(home, direction, backbone, file, header, system, own, entry, record.params)

    @functools.lru_cache(maxsize=128)  # noqa: B019, files that are in memory
    def rows(self, file: str) -> dict[System, list[Row]]:
        """The rows of each cell of ``translations.jsonl`` or ``scores.jsonl``, in the file's order."""
        cells: dict[System, list[Row]] = {}
        for line, row in enumerate(self._read(file, *System._fields, "id"), 1):
            cells.setdefault(System(*(row[name] for name in System._fields)), []).append(row | {"line": line})
        return cells

    def _read(self, file: str, *keys: str) -> list[dict[str, Any]]:
        """The rows of a file; none without it."""
        path = self.root / file
        return files.read_jsonl(files.regular(path, MOST_BYTES), keys) if path.is_file() else []

    @functools.cache  # noqa: B019
    def testset(self, direction: str, testset: str) -> dict[str, dict[str, Any]]:
        """The sentences of a test set by id; none without its file."""
        rows = self._read(testset_file(direction, testset), "id", "source", "target")
        return {str(row["id"]): row for row in rows}

    @functools.cache  # noqa: B019
    def prompt(self, backbone: str) -> Prompt | None:
        """A prompt of a backbone with its tokenizer, None if that is not here."""
        for home in self.sets:
            # All runs of a backbone share a tokenizer; one checkpoint that is here suffices.
            if home.split("/")[1] == backbone and (checkpoint := self.model(home)[0]):
                params = self.records[f"{home}/{HEADER}"].params
                return Prompt(params["prompt"], load_tokenizer(checkpoint, find_family(params["family"])))
        return None

    @functools.cache  # noqa: B019
    def tokens(self, direction: str, backbone: str, testset: str) -> dict[str, tuple[int, int]]:
        """|x| and |y| of each sentence of a test set by a backbone's tokenizer, without special tokens, as the file of
        token counts says; none without it."""
        rows = self._read(f"{direction}/{backbone}/tokens/{testset}.jsonl", "id", "source_tokens", "target_tokens")
        return {row["id"]: (row["source_tokens"], row["target_tokens"]) for row in rows}


def testset_file(direction: str, testset: str) -> str:
    """The file of a test set, below the folder of results."""
    return f"corpus/{direction}/test/{testset}.jsonl"
