"""The results of jobs: the files of a set of cells, and the record of what each result was made from.

The files of a set, ``translations.jsonl`` and ``scores.jsonl``, are tidy data, a row for each sentence of each cell: a
row says its cell (test set, length method, reveal order, step budget) and its sentence. The header beside each
(``translations.json``, ``scores.json``) is its record; its ``cells`` have what there is to say of each as a whole.

Every result has a record, which its job writes last: that of ``train.jsonl`` is ``train.made.json``. It has the rule
and its params, the path of the result, the digest of every input and every output, and a digest of all this.
:func:`faults` compares records with files and with each other: it tells what was edited, what is a copy of another
result, and what was made from files that are others by now; the audit and all tables ask it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict, Field

from entropy_valley import files, machine
from entropy_valley.errors import InputError, listed
from entropy_valley.settings import Foreign, misfits

# --- The rows of a set of cells, and its headers.

TRANSLATIONS, SCORES = "translations.jsonl", "scores.jsonl"
CONFIG = "config.json"  # of the last run into the folder of results, whole
DIAGNOSTICS = "diagnostics.json"  # of a run: the all-mask canvases that figures show
REMEDY = "Remove the file and run the rule that makes it again."
REMAKE = "`entropy-valley audit` lists what to make again; remove what was edited or copied, and run again."


class System(NamedTuple):
    """Which cell of a run a row belongs to. A system that writes from left to right has its beam for a method, no order
    ("") and no step budget (0)."""

    testset: str
    method: str
    order: str = ""
    steps: int = 0

    @property
    def label(self) -> str:
        """As people and logs read it: ``wmt22 ev med-T32``."""
        return " ".join(filter(None, [self.testset, self.method, self.order and f"{self.order}-T{self.steps}"]))


def system_of(cell: Any) -> System:
    """That of a cell of the config, or of anything else that says its test set, method, order and steps."""
    return System(cell.testset, cell.method, cell.order, cell.steps)


def header_path(path: str | Path) -> Path:
    """The header of a file of rows."""
    return Path(path).with_suffix(".json")


def moved(value: Any, root: str, here: str) -> Any:
    """Params with the paths below ``root`` below ``here`` instead: the results of a workflow that runs as a module with
    a prefix are elsewhere than its config says."""
    if root == here:
        return value
    if isinstance(value, Mapping):
        return {moved(key, root, here): moved(one, root, here) for key, one in value.items()}
    if isinstance(value, list):
        return [moved(one, root, here) for one in value]
    inside = isinstance(value, str) and value.startswith(f"{root}/")
    return here + value.removeprefix(root) if inside else value


def tidy(cells: Mapping[System, Iterable[Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The rows of several cells as one file has them."""
    for system, rows in cells.items():
        yield from ({**system._asdict(), **row} for row in rows)


@files.read_once(8)
def systems(path: Path) -> dict[System, list[dict[str, Any]]]:
    """The rows of each cell, in the file's order and without the cell's own columns.

    Raises InputError for a file that is not what its record says, and for a row without its cell or its sentence's
    ``id``.
    """
    require_unedited(path)
    cells: dict[System, list[dict[str, Any]]] = {}
    for row in files.read_jsonl(path, (*System._fields, "id")):
        cells.setdefault(System(*(row.pop(name) for name in System._fields)), []).append(row)
    return cells


def rows(path: str | Path, cell: Any) -> Sequence[dict[str, Any]]:
    """The rows of one cell; raise InputError where the file has none of it."""
    cells, system = systems(path), system_of(cell)
    if system not in cells:
        raise InputError(path, f"has no rows of {system.label}", REMEDY)
    return cells[system]


def entry(path: str | Path, cell: Any) -> dict[str, Any]:
    """What the header of a file of rows says of one cell; raise InputError where it says nothing of it."""
    cells, system = entries(header_path(path)), system_of(cell)
    if system not in cells:
        raise InputError(header_path(path), f"has nothing of {system.label}", REMEDY)
    return cells[system]


@files.read_once(128)
def entries(path: Path) -> dict[System, dict[str, Any]]:
    """What a header says of each cell."""
    content = files.read_json(path)
    try:
        return {System(*(one[name] for name in System._fields)): one for one in content["facts"]["cells"]}
    except (LookupError, TypeError):
        raise InputError(path, "is not a header of translations or scores", REMEDY) from None


# --- The record of a result.

ENDING = ".made.json"
CODE = {".py", ".json", ".csv", ".tex", ".html", ".css", ".js", ".md"}  # the endings of the package's files
SET_FILES = [name for rows in (TRANSLATIONS, SCORES) for name in (rows, header_path(rows).name)]
HEADERS = {*SET_FILES} - {TRANSLATIONS, SCORES}  # which are records themselves
REPORTS = ("table", "comparison", "figure")  # rules whose results have checked what they read
# The folders of the package that make numbers.
COMPUTING = ("data", "demo", "decoding", "lengths", "model", "scoring", "training", "translation")
SHORT = 12  # hex digits of a digest in print
_AGAIN = "Remove the result beside it and run again."
CARD = "README.md"  # in a whole folder: for people, who may edit it


@dataclass(frozen=True)
class Record:
    """``path`` is the first output as its job called it: of a set it names direction, backbone, seed and set.
    ``inputs`` has digests by path; ``outputs`` has the ``digest`` by file name; ``facts`` is whatever else a
    job says about its result. In its file it has its own ``digest``, too: that of all else."""

    rule: str
    path: str
    params: Any
    inputs: dict[str, str]
    outputs: dict[str, dict[str, Any]]
    facts: dict[str, Any] = field(default_factory=dict)

    def write(self, place: Path) -> None:
        content = json.loads(files.canonical(dataclasses.asdict(self)))  # as it is read: its keys are texts
        files.write_json(place, content | {"digest": files.digest(content)})


class _Output(Foreign):
    digest: str


class _Cell(Foreign):
    testset: str
    method: str
    order: str
    steps: int


class _Facts(Foreign):
    codes: list[str] = Field([])
    cells: list[_Cell] = Field([])


class RecordFile(Foreign):
    """The schema of a record's file."""

    model_config = ConfigDict(extra="forbid")
    rule: str
    path: str
    params: dict[str, Any]
    inputs: dict[str, str]
    outputs: dict[str, _Output]
    facts: _Facts
    digest: str


def record_path(path: str | Path) -> Path:
    """Where the record of a job is whose first output is ``path``; that of a set is its header."""
    return Path(path).with_suffix(".json" if Path(path).name in SET_FILES else ENDING)


def read_record(place: Path) -> Record | None:
    """The record in a file; None without one. Raises InputError for anything else, and for one that was edited."""
    return _record(place) if place.is_file() else None


@files.read_once(4096)
def _record(place: Path) -> Record:
    try:
        content = json.loads(files.regular(place, files.MOST).read_bytes())
        if problems := misfits(RecordFile, content):
            raise InputError(place, f"is not a record of a result: {listed(problems, 1)}", _AGAIN)
        written, digest = content.pop("digest"), files.digest(content)
    except (ValueError, RecursionError):  # no JSON, or what none of ours has: NaN, half of a surrogate pair
        raise InputError(place, "is not a record of a result", _AGAIN) from None
    if written != digest:
        raise InputError(place, f"was edited: its digest is {digest[:SHORT]}, {written:.{SHORT}} was written", _AGAIN)
    return Record(**content)


def record_of(path: str | Path) -> Record | None:
    """The record that describes a file: the one named after it, or after the first output of the same job, which may
    be in the folder above."""
    described = _described(Path(path))
    return described[1] if described else None


def _described(path: Path) -> tuple[Path, Record] | None:
    """The first output of the job that wrote a file, and the record beside it."""
    others = (place for folder in list(path.parents)[:2] for place in sorted(folder.glob(f"*{ENDING}")))
    for place in itertools.chain([record_path(path)], others):
        record = read_record(place)
        if record and str(path.relative_to(place.parent)) in record.outputs:
            return place.parent / Path(record.path).name, record
    return None


# --- Whether results belong together, by their records alone.

_digest = files.read_once(None)(files.kept_digest)


class Fault(NamedTuple):
    """What is wrong with a result. ``read``: the file that it was made from, where that is what has changed."""

    text: str
    read: Path | None = None


def faults(first: Path, record: Record, root: str | Path) -> Iterator[Fault]:
    """Why a result is not what its place in the folder of results, ``root``, says; ``first`` is one of its outputs.

    It may be a copy from another place. Its files may have been edited. It may have been made from files that were made
    again since, or edited if they are a user's own. Files that are not there are not missed: that is Snakemake's task.
    """
    if not f"/{record_path(record.path)}".endswith(f"/{record_path(first).relative_to(root)}"):
        yield Fault(f"is a copy of {record.path}")
        return
    yield from _edits(first, record)
    for path, digest, is_result in _inputs(record, first, root):
        if not is_result:
            if path.is_file() and _digest(path) != digest:
                yield Fault(f"{path} was edited after it", path)
        elif described := _described(path):
            current = described[1].outputs[str(path.relative_to(described[0].parent))]["digest"]
            if current != digest:
                yield Fault(f"{path.name} was made again after it", path)


def _edits(first: Path, record: Record) -> Iterator[Fault]:
    for output, written in record.outputs.items():
        path = first.parent / output
        if path.is_file() and (digest := _digest(path)) != written["digest"]:
            yield Fault(f"{output} was edited: its digest is {digest[:SHORT]}, {written['digest'][:SHORT]} was written")


def require_unedited(path: Path) -> None:
    """Raise InputError for a result that is not what its record says; nothing tells of a file without one."""
    if described := _described(path):
        for fault in _edits(*described):
            raise InputError(path, fault.text, REMAKE)


def _inputs(record: Record, first: Path, root: str | Path) -> Iterator[tuple[Path, str, bool]]:
    """Where each input is now, its digest, and whether it is a result: the folder of results may have been moved."""
    former = str(record_path(record.path)).removesuffix(str(record_path(first).relative_to(root)))
    for path, digest in record.inputs.items():
        is_result = path.startswith(former)
        yield Path(root, path.removeprefix(former)) if is_result else Path(path), digest, is_result


@dataclass(frozen=True)
class Ancestry:
    """What results were made by. ``codes``: by rule, how many results each version of the code has made. ``bare``: the
    results that have no record, so that nothing tells what they were made from. ``contents``: the digests of all
    others, by path in the folder of results."""

    codes: Mapping[str, Counter[str]] = field(default_factory=dict)
    bare: Sequence[str] = ()
    contents: Mapping[str, str] = field(default_factory=dict)

    @property
    def seal(self) -> str:
        """One digest of all contents and their paths: two folders that have the same one come to the same table."""
        return files.digest(self.contents)


def ancestry(paths: Iterable[str | Path], root: str | Path) -> Ancestry:
    """The ancestry of some results, of all that they were made from in turn, as far as their records are there.

    Raises InputError for the first one with a fault, see :func:`faults`.
    """
    codes: dict[str, Counter[str]] = {}
    contents: dict[str, str] = {}
    bare, queue, seen = [], [*map(Path, paths)], set[Path]()
    for path in queue:  # it grows
        if path in seen or path.name in HEADERS or path.name.endswith(ENDING):
            continue
        described = _described(path)
        if described is None:
            if path.is_file():
                bare.append(str(path.relative_to(root)))
            seen.add(path)
            continue
        first, record = described
        if first in seen:
            continue
        seen |= {first, path}
        for fault in faults(first, record, root):
            raise InputError(path, fault.text, REMAKE)
        if record.rule not in REPORTS:
            codes.setdefault(record.rule, Counter()).update(record.facts.get("codes", ()))
            folder = first.parent.relative_to(root)
            contents |= {(folder / name).as_posix(): written["digest"] for name, written in record.outputs.items()}
            queue += [read for read, _, is_result in _inputs(record, first, root) if is_result]
    return Ancestry(codes, bare, contents)


def code() -> dict[str, str]:
    """The digest of each file of the package."""
    package = Path(__file__).parent
    paths = (path for path in sorted(package.rglob("*")) if path.suffix in CODE)
    return {str(path.relative_to(package)): files.file_digest(path) for path in paths}


@functools.cache
def code_digest() -> str:
    """That of the code that makes numbers: an edit of a table's layout makes no other version of it."""
    return files.digest({name: digest for name, digest in code().items() if name.split("/")[0] in COMPUTING})


@contextlib.contextmanager
def made(
    rule: str,
    params: Any,
    inputs: Iterable[str | Path],
    outputs: Sequence[str | Path],
    *,
    digests: Mapping[str | Path, str | None] | None = None,
    whole_folder: bool = False,
) -> Iterator[Record]:
    """Keep the record of what the block makes, beside the first of the ``outputs``.

    Raises InputError if one of the ``inputs`` is missing, or is a result that was edited since its job wrote it.
    ``digests`` has those of others by path, such as that of a checkpoint's folder. The block may add inputs and facts
    to the record that it gets. The fact ``codes`` has the digest of this code, and of any that has computed stored
    values; ``machine`` is :func:`.machine.description`. With ``whole_folder`` every file in the folder of the first
    output is an output.

    The record is written last.
    """
    read = {str(path): digest for path, digest in (digests or {}).items() if digest}
    for path in inputs:
        if not Path(path).is_file():
            raise files.not_there(path)
        require_unedited(Path(path))
        read[str(path)] = _digest(path)
    facts = {"codes": [code_digest()], "machine": machine.description()}
    place, record = record_path(outputs[0]), Record(rule, str(outputs[0]), params, read, {}, facts)
    yield record
    written = [path for path in map(Path, outputs) if path != place]
    if whole_folder:  # without hidden files, which killed writers leave
        paths = (path for path in sorted(place.parent.rglob("*")) if path.is_file() and path.name[0] != ".")
        written = [path for path in paths if not path.name.endswith((ENDING, CARD))]
    for path in written:
        record.outputs[str(path.relative_to(place.parent))] = {"digest": files.file_digest(path)}
    record.write(place)


# --- In which keys the params of two jobs, or two configs, differ.

LONGEST = 60  # characters of a value in print
SHARED = 12  # of them, before the first that differs


ABSENT = object()  # the value of a key that one side does not have


class Difference(NamedTuple):
    """A key by its path, such as ``length_methods.ev.ratios``, and its value on either side, or ABSENT."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        """``key: before → after``. Where one of the two is long, both begin shortly before they differ."""
        texts = ["absent" if one is ABSENT else files.canonical(one) for one in (self.before, self.after)]
        start = 0
        if max(map(len, texts)) > LONGEST:
            differ = (at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other)
            start = max(0, next(differ, 0) - SHARED)
        parts = [text[start:] for text in texts]
        cut = [part if len(part) <= LONGEST else f"{part[:LONGEST]}…" for part in parts]
        return f"{self.key}: {' → '.join('…' * (start > 0) + part for part in cut)}"


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Every difference of two values as JSON has them; lists are compared whole. The key of the whole is ""."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            deeper = f"{path}.{key}".lstrip(".")
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), deeper)
    elif before != after:
        yield Difference(path, before, after)
