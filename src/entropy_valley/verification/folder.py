"""A folder of results as a stranger gets it: its records, files and rows; and the report of what was compared."""

from __future__ import annotations

import contextlib
import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple

from entropy_valley import files, shipped
from entropy_valley.errors import InputError, brief, listed
from entropy_valley.results import ENDING, HEADERS, SCORES, TRANSLATIONS, RecordFile, System, header_path
from entropy_valley.settings import read_object
from entropy_valley.texts import shown

SKIPPED = ("store", "work", "logs")  # folders of the results that no table reads
FILES = "files and the digests in records"  # a part of the report
MOST_BYTES = 2**31  # of a file of rows
HEADER, SCORES_HEADER = (header_path(name).name for name in (TRANSLATIONS, SCORES))
REMEDY = "Get the file again from where the folder comes from, or make the result again."


# --- The report.


class Unchecked(NamedTuple):
    """In the place of a value that follows: why there is none."""

    reason: str


class Difference(NamedTuple):
    """What is not as it follows from the rest: the part of the report, the file, and what is wrong with it."""

    part: str
    file: str
    problem: str

    def __str__(self) -> str:
        return f"{self.file}: {shown(self.problem)}"


@dataclass
class Report:
    """What was compared, by part: how many values are the same, which differ, and why others could not be checked."""

    same: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    unchecked: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    margins: dict[str, float] = field(default_factory=dict)
    """Of texts that differ in a low precision: where, and how many nats the closest decision was from another one."""

    def compare(self, part: str, file: object, place: str, stored: Any, follows: Any, within: float = 0.0) -> None:
        """Compare two values; numbers may differ by ``within``, and in the last of ten digits."""
        if isinstance(follows, Unchecked):
            self.unchecked[part][follows.reason] += 1
        elif _alike(stored, follows, within):
            self.same[part] += 1
        else:
            values = [brief(value, 80) for value in (stored, follows)]
            self.differ(part, file, f"{place}: {values[0]} is stored, {values[1]} follows")

    def differ(self, part: str, file: object, problem: str) -> None:
        self.differences.append(Difference(part, str(file), problem))

    @contextlib.contextmanager
    def reading(self, part: str, path: Path, file: object) -> Iterator[None]:
        """What the block cannot read is a difference, and what comes after the block is still checked."""
        try:
            with files.readable(path, "result", REMEDY):
                yield
        except InputError as error:
            self.differ(part, file, f"cannot be checked: {' '.join(str(error).split())}")


def _alike(stored: Any, follows: Any, within: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, follows))
    return math.isclose(stored, follows, rel_tol=1e-9, abs_tol=within) if numbers else stored == follows


# --- The folder.


class Set(NamedTuple):
    """A set of a run: where it is, and what its path says of the run."""

    home: str
    direction: str
    backbone: str
    run: str


class Row(NamedTuple):
    """A row of a set, and its line."""

    line: int
    values: Mapping[str, Any]


class Folder:
    """Records by their place, such as ``tables/main.made.json``, and what they describe. Places are below ``root``.

    ``others`` are folders in it that are results of their own, as results/demo is in results: they are not read.
    """

    def __init__(self, root: Path, report: Report) -> None:
        self.root = root
        if not root.is_dir():
            raise InputError(root, "is not a folder", "Name the folder of results, such as results.")
        inside = (path for part in ("corpus/*/*", "tables/*") for path in root.glob(f"*/{part}{ENDING}"))
        self.others = sorted({path.relative_to(root).parts[0] for path in inside})
        paths = sorted(path.relative_to(root) for path in root.rglob("*.json"))
        places = [path.as_posix() for path in paths if _is_record(path) and path.parts[0] not in self.others]
        if not {place.split("/")[0] for place in places} & {"corpus", "tables", "figures"}:
            such = f", such as {listed([str(root / name) for name in self.others], 3)}" * bool(self.others)
            remedy = f"Name the folder that has tables/ and corpus/ in it{such}."
            raise InputError(root, "has no records of results", remedy)
        self.records: dict[str, dict[str, Any]] = {}
        for place in places:
            with report.reading(FILES, root / place, place):
                self.records[place] = read_object(root / place, RecordFile)
        headers = [place.split("/") for place in self.records if place.endswith(f"/{HEADER}")]
        self.sets = [Set("/".join(path[:4]), *path[:3]) for path in headers if len(path) == 5]

    def local(self, place: str, path: str) -> str | None:
        """Where a file is now that a record calls ``path``; None for one that is not in the folder of results."""
        record = self.records[place]
        first = (PurePosixPath(place).parent / PurePosixPath(record["path"]).name).as_posix()
        former = str(record["path"]).removesuffix(first)
        inside = PurePosixPath(path.removeprefix(former))
        outside = not path.startswith(former) or inside.is_absolute() or ".." in inside.parts
        return None if outside else inside.as_posix()

    def input_paths(self, place: str) -> list[Path]:
        """Where the inputs of a record are now: LLaDA-tiny's checkpoint is wherever this package is installed."""
        shipped_digest, paths = shipped.origin()["digest"], []
        for path, digest in self.records[place]["inputs"].items():
            inside = self.local(place, path)
            elsewhere = shipped.CHECKPOINT if digest == shipped_digest else Path(path)
            paths.append(self.root / inside if inside else elsewhere)
        return paths

    def check(self, report: Report) -> None:
        """Compare every file that a record lists with the digest in it, be it what its job wrote or what it read."""
        places: dict[tuple[str, str, str | Unchecked], list[str]] = {}  # by file, digest and content
        for place, record in self.records.items():
            path, folder = record["path"], PurePosixPath(place).parent
            first = (folder / PurePosixPath(path).name).as_posix()
            report.compare(FILES, place, "path", path, path if f"/{path}".endswith(f"/{first}") else first)
            own = files.digest({key: value for key, value in record.items() if key != "digest"})
            report.compare(FILES, place, "its own digest", record["digest"], own)
            for name, output in record["outputs"].items():
                file = self.local(place, f"{path.removesuffix(PurePosixPath(path).name)}{name}") or name
                written = self._digest(file) if (self.root / file).is_file() else "no file"
                places.setdefault((file, output["digest"], written), []).append(place)
            for name, digest in record["inputs"].items():
                inside = self.local(place, name)
                places.setdefault((inside or name, digest, self._input_digest(inside)), []).append(place)
        for (file, digest, content), naming in places.items():
            others = f" and {len(naming) - 1} more" * (len(naming) > 1)
            report.compare(FILES, file, f"digest in {naming[0]}{others}", digest, content)
        for name in (TRANSLATIONS, SCORES):
            for path in sorted(self.root.glob(f"*/*/*/*/{name}")):
                header = header_path(path).relative_to(self.root)
                if header.parts[0] not in self.others and not (self.root / header).is_file():
                    report.differ(FILES, header, "is not there")

    def _input_digest(self, inside: str | None) -> str | Unchecked:
        """The digest of what a job has read, as far as it is here."""
        if inside is None:
            return Unchecked("an input that is not among the results")
        if inside.split("/")[0] in (*SKIPPED, "benchmarks"):
            return Unchecked("measured times and logs, which a repeated job writes anew")
        if (self.root / inside).is_dir():
            return Unchecked("an input that is a folder: the record in it has the digests of its files")
        if not (self.root / inside).is_file():
            return Unchecked("an input that is not there any more")
        return self._digest(inside)

    @functools.cache  # noqa: B019, as long as the process
    def _digest(self, name: str) -> str:
        return files.file_digest(self.root / name)

    # Rows.

    @functools.lru_cache(maxsize=128)  # noqa: B019, files that are in memory
    def rows(self, file: str) -> dict[System, list[Row]]:
        """The rows of each cell of ``translations.jsonl`` or ``scores.jsonl``, in the file's order."""
        cells: dict[System, list[Row]] = {}
        for line, row in enumerate(self._read(file, *System._fields, "id"), 1):
            system = System(*(row[name] for name in System._fields))
            if any(isinstance(value, dict | list) for value in (*system, row["id"])):
                raise InputError(f"{self.root / file}:{line}", "its cell or id is not a plain value", REMEDY)
            cells.setdefault(system, []).append(Row(line, row))
        return cells

    def _read(self, file: str, *keys: str) -> list[dict[str, Any]]:
        return files.read_jsonl(files.regular(self.root / file, MOST_BYTES), keys)

    @functools.cache  # noqa: B019
    def testset(self, direction: str, testset: str) -> dict[str, dict[str, Any]]:
        """The sentences of a test set by id; none without its file."""
        file = f"corpus/{direction}/test/{testset}.jsonl"
        rows = self._read(file, "id", "source", "target") if (self.root / file).is_file() else []
        return {str(row["id"]): row for row in rows}

    # Tokens.

    @functools.cache  # noqa: B019
    def tokenizer(self, backbone: str) -> Any:
        """The tokenizer of a backbone, None if it is not here."""
        for place, record in self.records.items():
            if record["rule"] not in ("translate", "tokens") or record["params"].get("backbone") != backbone:
                continue
            for folder in self.input_paths(place):
                if (folder / "tokenizer.json").is_file():
                    return _read_tokenizer(folder)
        return None

    @functools.cache  # noqa: B019
    def tokens(self, direction: str, backbone: str, testset: str) -> dict[str, tuple[int, int]]:
        """|x| and |y| of each sentence of a test set by a backbone's tokenizer, without special tokens; where that is
        not here, as the file of token counts says; none without both."""
        tokenizer, rows = self.tokenizer(backbone), self.testset(direction, testset)
        if tokenizer is None:
            return self.counted(direction, backbone, testset)
        counts = []
        for side in ("source", "target"):
            texts = [row[side] for row in rows.values()]
            counts.append([len(one.ids) for one in tokenizer.encode_batch(texts, add_special_tokens=False)])
        return dict(zip(rows, zip(*counts, strict=True), strict=True))

    def counted(self, direction: str, backbone: str, testset: str) -> dict[str, tuple[int, int]]:
        """The same as a job has written it down."""
        file = f"{direction}/{backbone}/tokens/{testset}.jsonl"
        rows = self._read(file, "id", "source_tokens", "target_tokens") if (self.root / file).is_file() else []
        return {row["id"]: (row["source_tokens"], row["target_tokens"]) for row in rows}


def _read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint. The library reads JSON, and executes nothing."""
    import tokenizers

    path, more = files.regular(folder / "tokenizer.json", files.MOST), folder / "special_tokens_map.json"
    with files.readable(path, "tokenizer", REMEDY):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # what a sentence spells is text
        if more.is_file():  # some declare their mask token only there
            declared = [one for one in files.read_json(more, files.MOST).values() if not isinstance(one, list)]
            tokenizer.add_special_tokens([one["content"] if isinstance(one, dict) else one for one in declared])
    return tokenizer


def _is_record(place: PurePath) -> bool:
    """Whether a JSON file describes a result, by its path below the folder."""
    hidden = any(part[0] == "." for part in place.parts) or place.parts[0] in SKIPPED
    return not hidden and (place.name.endswith(ENDING) or place.name in HEADERS)


def cells_of(record: Mapping[str, Any]) -> dict[System, Mapping[str, Any]]:
    """What a header says of each cell."""
    return {System(*(one[name] for name in System._fields)): one for one in record["facts"].get("cells", [])}
