"""A folder of results as a stranger gets it: its records, files and rows; and the report of what was compared."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple

from entropy_valley import files
from entropy_valley.demo import shipped
from entropy_valley.errors import InputError, brief, listed
from entropy_valley.results import ENDING, REPORTS, SCORES, TRANSLATIONS, RecordFile, System
from entropy_valley.settings import read_object
from entropy_valley.texts import guarded, shown

HEADERS = ("translations.json", "scores.json")
SKIPPED = ("store", "work", "logs")  # folders of the results that no table reads
CONTENTS = "files and the digests in records"  # a part of the report
MOST_BYTES = 2**31  # of a file of rows
REMEDY = "Get the file again from where the folder comes from, or make the result again."


# --- The report.


class Unchecked(NamedTuple):
    """In the place of a recomputed value: why there is none."""

    reason: str


class PValue(float):
    """A p-value of the signed-rank test, whose digits count however small it is."""


class NotAtHandError(Exception):
    """A number cannot be computed again; the message says why."""


class Difference(NamedTuple):
    """Where a stored value is not the recomputed one."""

    part: str
    file: str
    place: str
    stored: Any
    recomputed: Any

    def __str__(self) -> str:
        stored, recomputed = (shown(brief(text(value), 80)) or "nothing" for value in (self.stored, self.recomputed))
        return f"{self.file}: {shown(self.place)}: {stored} is stored, {recomputed} follows"


@dataclass
class Report:
    """What was compared, by part: how many values are the same, which differ, and why others could not be checked."""

    same: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    unchecked: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    margins: dict[str, float] = field(default_factory=dict)
    """Of texts that differ in a low precision: where, and how many nats the closest decision was from another one."""

    def compare(self, part: str, file: object, place: str, stored: Any, recomputed: Any) -> None:
        if isinstance(recomputed, Unchecked):
            self.unchecked[part][recomputed.reason] += 1
        elif alike(stored, recomputed):
            self.same[part] += 1
        else:
            self.differences.append(Difference(part, str(file), place, stored, recomputed))


def alike(stored: Any, recomputed: Any) -> bool:
    """Whether a stored value, perhaps as a CSV file has it, is the recomputed one in nine significant digits. Below
    1e-15 any other number than a :class:`PValue` is 0."""
    if isinstance(recomputed, bool):
        return stored is recomputed or stored == str(recomputed)
    if recomputed is None or (isinstance(recomputed, float) and math.isnan(recomputed)):
        return stored is None or stored == ""
    if isinstance(recomputed, int | float):
        noise = 0.0 if isinstance(recomputed, PValue) else 1e-15
        try:
            return not isinstance(stored, bool) and math.isclose(float(stored), recomputed, rel_tol=1e-9, abs_tol=noise)
        except (TypeError, ValueError, OverflowError):
            return False
    if isinstance(recomputed, str) and isinstance(stored, str):
        return stored in (recomputed, guarded(re.sub(r"\r\n?", "\n", recomputed)))  # the latter in a CSV file
    return stored == recomputed


def text(value: Any) -> str:
    """A value as a CSV file has it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.10g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


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

    def __init__(self, root: Path) -> None:
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
        self.records = {place: read_object(root / place, RecordFile) for place in places}

    def result(self, place: str) -> str:
        """The first output of the job whose record this is."""
        return (PurePosixPath(place).parent / PurePosixPath(self.records[place]["path"]).name).as_posix()

    def local(self, place: str, path: object) -> str | None:
        """Where a file is now that a record calls ``path``; None for one that is not in the folder of results."""
        former = str(self.records[place]["path"]).removesuffix(self.result(place))
        if not isinstance(path, str) or not path.startswith(former):
            return None
        inside = PurePosixPath(path.removeprefix(former))
        return None if inside.is_absolute() or ".." in inside.parts else inside.as_posix()

    def input_file(self, place: str, ending: str) -> str | None:
        """The first input of a record whose path ends so, if it is in the folder."""
        for path in self.records[place]["inputs"]:
            inside = self.local(place, path)
            if inside and f"/{inside}".endswith(ending) and (self.root / inside).is_file():
                return inside
        return None

    def input_paths(self, place: str) -> list[Path]:
        """Where the inputs of a record are now: LLaDA-tiny's checkpoint is wherever this package is installed."""
        shipped_digest, paths = shipped.origin()["digest"], []
        for path, digest in self.records[place]["inputs"].items():
            inside = self.local(place, path)
            elsewhere = shipped.CHECKPOINT if digest == shipped_digest else Path(path)
            paths.append(self.root / inside if inside else elsewhere)
        return paths

    def check_contents(self, report: Report) -> None:
        """Compare every file that a record lists with the digest in it, be it what its job wrote or what it read."""
        places: dict[tuple[str, str, str | Unchecked], list[str]] = {}  # by file, digest and content
        for place, record in self.records.items():
            path, result = record["path"], self.result(place)
            report.compare(CONTENTS, place, "path", path, path if f"/{path}".endswith(f"/{result}") else result)
            with files.readable(self.root / place, "record of a result", REMEDY):
                own = files.digest({key: value for key, value in record.items() if key != "digest"})
            report.compare(CONTENTS, place, "its own digest", record["digest"], own)
            for name, output in record["outputs"].items():
                inside = self.local(place, f"{path.removesuffix(PurePosixPath(path).name)}{name}")
                written = self.digest(inside) if inside and (self.root / inside).is_file() else "no file"
                places.setdefault((inside or name, output["digest"], written), []).append(place)
            for name, digest in record["inputs"].items():
                inside = self.local(place, name)
                places.setdefault((inside or name, str(digest), self._input_digest(inside)), []).append(place)
        for (file, digest, content), naming in places.items():
            others = f" and {len(naming) - 1} more" * (len(naming) > 1)
            report.compare(CONTENTS, file, f"digest in {naming[0]}{others}", digest, content)

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
        return self.digest(inside)

    def check_seals(self, report: Report) -> None:
        """Compare the seal below each table: a digest of all results that it comes from, and of their paths."""
        for place, record in self.records.items():
            text = (self.root / self.result(place)).with_suffix(".md")
            if record["rule"] in REPORTS and text.is_file():
                with files.readable(text, "table", REMEDY):
                    seals = re.findall(r"^seal: `(\w+)`$", files.regular(text, files.MOST).read_text("utf-8"), re.M)
                for seal in seals:
                    report.compare(CONTENTS, text.relative_to(self.root).as_posix(), "seal", seal, self._seal(place))

    def _seal(self, place: str) -> str:
        contents: dict[str, str] = {}
        queue = [self.local(place, path) for path in self.records[place]["facts"].get("made_from", [])]
        seen: set[str] = set()
        for inside in queue:  # it grows
            described = self._describing.get(inside or "")
            if described is None or described in seen or self.records[described]["rule"] in REPORTS:
                continue
            seen.add(described)
            record, folder = self.records[described], PurePosixPath(described).parent
            contents |= {(folder / name).as_posix(): output["digest"] for name, output in record["outputs"].items()}
            queue += [self.local(described, path) for path in record["inputs"]]
        return files.digest(contents)

    @functools.cached_property
    def _describing(self) -> dict[str, str]:
        """The record that lists each result."""
        return {
            (PurePosixPath(place).parent / name).as_posix(): place
            for place, record in self.records.items()
            for name in record["outputs"]
        }

    @functools.cache  # noqa: B019, as long as the process
    def digest(self, name: str) -> str:
        return files.file_digest(self.root / name)

    # Rows.

    @functools.cached_property
    def sets(self) -> list[Set]:
        """Those that have translations and a header."""
        parts = [place.split("/") for place in self.records if place.endswith(f"/{HEADERS[0]}")]
        return [Set("/".join(path[:4]), *path[:3]) for path in parts if len(path) == 5]

    @functools.lru_cache(maxsize=128)  # noqa: B019, files that are in memory
    def rows(self, file: str) -> dict[System, list[Row]]:
        """The rows of each cell of ``translations.jsonl`` or ``scores.jsonl``, in the file's order."""
        cells: dict[System, list[Row]] = {}
        for line, row in enumerate(self._read_rows(file, (*System._fields, "id")), 1):
            system = System(*(row[name] for name in System._fields))
            if any(isinstance(value, dict | list) for value in (*system, row["id"])):
                raise InputError(f"{self.root / file}:{line}", "its cell or id is not a plain value", REMEDY)
            cells.setdefault(system, []).append(Row(line, row))
        return cells

    def _read_rows(self, file: str, keys: Sequence[str]) -> list[dict[str, Any]]:
        files.regular(self.root / file, MOST_BYTES)
        return files.read_jsonl(self.root / file, keys)

    def outputs(self, home: str) -> dict[System, list[Row]]:
        return self.rows(f"{home}/{TRANSLATIONS}")

    def texts(self, home: str, system: System) -> dict[str, str]:
        """The output of each sentence, by id."""
        return {row.values["id"]: row.values["hypothesis"] for row in self.outputs(home).get(system, [])}

    def segments(self, home: str) -> dict[System, list[Row]]:
        return self.rows(f"{home}/{SCORES}") if (self.root / home / SCORES).is_file() else {}

    @functools.cache  # noqa: B019
    def testset(self, home: str, testset: str) -> dict[str, dict[str, Any]]:
        """The sentences of a test set by id, from the file that a set was translated from; none without it."""
        file = self.input_file(f"{home}/{HEADERS[0]}", f"/{testset}.jsonl")
        rows = self._read_rows(file, ("id", "source", "target")) if file else []
        return {str(row["id"]): row for row in rows}

    # Tokens.

    @functools.cached_property
    def tokenizers(self) -> dict[str, Path]:
        """The folder with the tokenizer of each backbone that a record names, where it is here."""
        folders: dict[str, Path] = {}
        for place, record in self.records.items():
            params = record["params"]
            if record["rule"] in ("translate", "tokens") and "backbone" in params:
                for folder in self.input_paths(place):
                    if (folder / "tokenizer.json").is_file():
                        folders.setdefault(str(params["backbone"]), folder)
                        folders.setdefault(folder.parent.name, folder)  # variants share that of backbones/NAME/seedN
        return folders

    @functools.cache  # noqa: B019
    def tokenizer(self, backbone: str) -> Any:
        """The tokenizer of a backbone, None if it is not here. The library reads JSON, and executes nothing."""
        import tokenizers

        if backbone not in self.tokenizers:
            return None
        folder = self.tokenizers[backbone]
        path = files.regular(folder / "tokenizer.json", files.MOST)
        with files.readable(path, "tokenizer", REMEDY):
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
            tokenizer.no_padding()
            tokenizer.no_truncation()
            if (more := folder / "special_tokens_map.json").is_file():  # some declare their mask token only there
                declared = [one for one in files.read_json(more, files.MOST).values() if not isinstance(one, list)]
                tokenizer.add_special_tokens([one["content"] if isinstance(one, dict) else one for one in declared])
            tokenizer.encode_special_tokens = True  # what a sentence spells is text
        return tokenizer

    def count(self, backbone: str, texts: Sequence[str]) -> list[int] | None:
        """The tokens of each text, without special ones; None where the tokenizer is not here."""
        if (tokenizer := self.tokenizer(backbone)) is None:
            return None
        return [len(one.ids) for one in tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    @functools.cache  # noqa: B019
    def tokens(self, home: str, testset: str) -> dict[str, tuple[int, int]]:
        """|x| and |y| of each sentence of a test set by the tokenizer of a set's backbone; where that is not at hand,
        as the file of token counts says; none without both."""
        rows, (_, backbone, *_) = self.testset(home, testset), home.split("/")
        sources, targets = (self.count(backbone, [row[side] for row in rows.values()]) for side in ("source", "target"))
        if sources is None or targets is None:
            return self.counted(home, testset)
        return dict(zip(rows, zip(sources, targets, strict=True), strict=True))

    def counted(self, home: str, testset: str) -> dict[str, tuple[int, int]]:
        """The same as a job has written it down."""
        file = f"{PurePosixPath(home).parents[1]}/tokens/{testset}.jsonl"
        keys = ("id", "source_tokens", "target_tokens")
        rows = self._read_rows(file, keys) if (self.root / file).is_file() else []
        return {row["id"]: (row["source_tokens"], row["target_tokens"]) for row in rows}


def _is_record(place: PurePath) -> bool:
    """Whether a JSON file describes a result, by its path below the folder."""
    hidden = any(part[0] == "." for part in place.parts) or place.parts[0] in SKIPPED
    return not hidden and (place.name.endswith(ENDING) or place.name in HEADERS)


def cells_of(record: Mapping[str, Any]) -> Iterator[tuple[System, Mapping[str, Any]]]:
    """What a header says of each cell."""
    for one in record["facts"].get("cells", []):
        yield System(*(one[name] for name in System._fields)), one
