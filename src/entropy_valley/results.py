"""The results of jobs: the files of a set of cells, and headers that say what results were made from.

The files of a set, ``translations.jsonl`` and ``scores.jsonl``, are tidy data, a row for each sentence of each cell: a
row says its cell (test set, length method, reveal order, step budget) and its sentence. Beside each is its header
(``translations.json``, ``scores.json``); its ``cells`` have what there is to say of each as a whole.

An adapter, a checkpoint, a corpus, a test set with its token counts, and COMET have a header, too: that of
``train.jsonl`` is ``train.made.json``. Its job writes it last: the rule and its params, the path of the result, the
digest of every input and every output, the code and the machine, and a digest of all this. What is made of these, such
as a table, has none: Snakemake knows when to make it again. :func:`require_sound` compares headers with files and with
each other before a table is made.
"""

import contextlib
import dataclasses
import functools
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from entropy_valley import files, machine
from entropy_valley.errors import InputError, brief
from entropy_valley.settings import JsonObject

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
    def name(self) -> str:
        """How it decodes, as paths say it: ``ev/med-T32``, ``beam4``."""
        return f"{self.method}/{self.order}-T{self.steps}" if self.order else self.method

    @property
    def label(self) -> str:
        """As people and logs read it: ``wmt22 ev med-T32``."""
        return f"{self.testset} {self.name.replace('/', ' ')}"


def system_of(cell: Any) -> System:
    """That of a cell of the config, or of anything else that says its test set, method, order and steps."""
    return System(cell.testset, cell.method, cell.order, cell.steps)


def moved(path: str, root: str, here: str) -> str:
    """A path below ``root`` below ``here`` instead: results of a module with a prefix, or in a storage, are elsewhere
    than the config says."""
    return here + path.removeprefix(root) if path.startswith(f"{root}/") else path


def tidy(cells: Mapping[System, Iterable[JsonObject]]) -> Iterator[dict[str, Any]]:
    """The rows of several cells as one file has them."""
    for system, rows in cells.items():
        yield from ({**system._asdict(), **row} for row in rows)


@files.read_once(8)
def systems(path: Path) -> dict[System, list[dict[str, Any]]]:
    """The rows of each cell, in the file's order and without the cell's own columns.

    Raises InputError for a file that is not what its header says, and for a row without its cell or its sentence's
    ``id``.
    """
    require_unedited(path)
    cells: dict[System, list[dict[str, Any]]] = {}
    for row in files.read_jsonl(path, (*System._fields, "id")):
        cells.setdefault(System(*(row.pop(name) for name in System._fields)), []).append(row)
    return cells


@files.read_once(128)
def entries(path: Path) -> dict[System, dict[str, Any]]:
    """What a header says of each cell."""
    cells = _record(path).facts.get("cells", [])
    with files.readable(path, "header of a result", _AGAIN):
        return {System(*(one[name] for name in System._fields)): one for one in cells}


# --- The header of a result: what it was made from.

ENDING = ".made.json"
HEADERS = ("translations.json", "scores.json")
SET_FILES = (TRANSLATIONS, HEADERS[0], SCORES, HEADERS[1])
CODE = {".py", ".json", ".csv"}  # the endings of the package's files that make numbers, and the folders with them
COMPUTING = ("data", "decoding", "experiment/demo", "lengths", "model", "scoring", "training", "translation")
SHORT = 12  # hex digits of a digest in print
_AGAIN = "Remove the result beside it and run again."
CARD = "README.md"  # of an adapter: for people, who may edit it
WEIGHTS = (".safetensors", ".ckpt")  # too large to be read for every table


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Record:
    """``path`` is the first output as its job called it: of a set it names direction, backbone, seed and set.
    ``inputs`` has digests by path; ``outputs`` has the ``digest`` by file name; ``facts`` is whatever else a
    job says about its result. In its file it has its own ``digest``, too: that of all else."""

    rule: str
    path: str
    params: Any
    inputs: dict[str, str]
    outputs: dict[str, dict[str, str]]
    facts: dict[str, Any] = field(default_factory=dict)

    def write(self, place: Path) -> None:
        content = json.loads(files.canonical(dataclasses.asdict(self)))  # as it is read: its keys are texts
        files.write_json(place, content | {"digest": files.digest(content)})


def record_path(path: str | Path) -> Path:
    """Where the header of a job is whose first output is ``path``."""
    return Path(path).with_suffix(".json" if Path(path).name in SET_FILES else ENDING)


def read_record(place: Path) -> Record | None:
    """The header in a file; None without one. Raises InputError for anything else, and for one that was edited."""
    return _record(place) if place.is_file() else None


@files.read_once(4096)
def _record(place: Path) -> Record:
    with files.readable(place, "header of a result", _AGAIN):
        content = files.read_json(place, files.MOST)
        written, digest = content.pop("digest"), files.digest(content)
        record = Record(**content)
    if written != digest:
        raise InputError(place, f"was edited: its digest is {digest[:SHORT]}, {written:.{SHORT}} was written", _AGAIN)
    return record


def record_of(path: str | Path) -> Record | None:
    """The header that describes a file: the one named after it, or after the first output of the same job, which may
    be in the folder above."""
    described = _described(Path(path))
    return described[1] if described else None


def _described(path: Path) -> tuple[Path, Record] | None:
    """The first output of the job that wrote a file, and the header beside it."""
    others = (place for folder in list(path.parents)[:2] for place in sorted(folder.glob(f"*{ENDING}")))
    for place in itertools.chain([record_path(path)], others):
        record = read_record(place)
        if record and str(path.relative_to(place.parent)) in record.outputs:
            return place.parent / Path(record.path).name, record
    return None


def require_unedited(path: Path) -> None:
    """Raise InputError for a result that is not what its header says; nothing tells of a file without one."""
    if described := _described(path):
        _require_unedited(*described)


def _require_unedited(first: Path, record: Record) -> None:
    for name, written in record.outputs.items():
        path = first.parent / name
        if path.is_file() and path.suffix not in WEIGHTS and (digest := files.digest_once(path)) != written["digest"]:
            before, now = written["digest"][:SHORT], digest[:SHORT]
            raise InputError(path, f"{name} was edited: its digest is {now}, {before} was written", REMAKE)


def require_sound(path: Path, root: str | Path, seen: set[Path]) -> None:
    """Raise InputError for a result below ``root`` that would print a wrong number: a copy from another place, an
    edited file, or one of its inputs that was made again after it. Its inputs are looked at in turn, as far as they are
    there with headers; ``seen`` has what was looked at before."""
    described = _described(path)
    if described is None or described[0] in seen:
        return
    first, record = described
    place = str(record_path(first).relative_to(root))
    # The folder of results may have been moved: how its job called it.
    former, own_place, _ = f"/{record_path(record.path)}".rpartition(f"/{place}")
    if not own_place:
        raise InputError(first, f"is a copy of {record.path}", REMAKE)
    _require_unedited(first, record)
    for name, digest in record.inputs.items():
        if not f"/{name}".startswith(f"{former}/"):
            continue  # a file of the user's own, which Snakemake watches
        read = Path(root, f"/{name}".removeprefix(f"{former}/"))
        if made := _described(read):
            require_sound(read, root, seen)
            if made[1].outputs[str(read.relative_to(made[0].parent))]["digest"] != digest:
                raise InputError(first, f"{read.name} was made again after it", REMAKE)
    seen.add(first)


@functools.cache
def code_digest() -> str:
    """That of the code that makes numbers: an edit of a table's layout makes no other version of it."""
    package = Path(__file__).parent
    paths = (path for folder in COMPUTING for path in sorted((package / folder).rglob("*")) if path.suffix in CODE)
    return files.digest({str(path.relative_to(package)): files.file_digest(path) for path in paths})


@contextlib.contextmanager
def made(
    rule: str,
    params: Any,
    inputs: Iterable[str | Path],
    outputs: Iterable[str | Path],
    digests: Mapping[str | Path, str | None] = {},
) -> Iterator[Record]:
    """Write the header of what the block makes, beside the first of the ``outputs``, when the block has ended.

    Raises InputError if one of the ``inputs`` is missing, or is a result that was edited since its job wrote it.
    ``digests`` has those of others by path, such as that of a checkpoint's folder. The block may add inputs and facts
    to the header that it gets. The fact ``code`` is the digest of this code, ``machine`` is
    :func:`.machine.description`.
    """
    read = {str(path): digest for path, digest in digests.items() if digest}
    for path in inputs:
        require_unedited(Path(path))
        read[str(path)] = files.digest_once(path)
    first, *others = map(Path, outputs)
    facts = {"code": code_digest(), "machine": machine.description()}
    record = Record(rule, str(first), params, read, {}, facts)
    yield record
    for path in (first, *others):
        if path != record_path(first) and path.name != CARD:
            record.outputs[str(path.relative_to(first.parent))] = {"digest": files.file_digest(path)}
    record.write(record_path(first))


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
        texts = ["absent" if one is ABSENT else files.canonical(one) for one in self[1:]]
        start = 0
        if max(map(len, texts)) > LONGEST:
            start = max(0, len(os.path.commonprefix(texts)) - SHARED)  # noqa: RUF071 - of characters
        before, after = ("…" * (start > 0) + brief(text[start:], LONGEST) for text in texts)
        return f"{self.key}: {before} → {after}"


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Every difference of two values as JSON has them; lists are compared whole. The key of the whole is ""."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            deeper = f"{path}.{key}".lstrip(".")
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), deeper)
    elif before != after:
        yield Difference(path, before, after)


def changed_params(specs: Mapping[str, str]) -> Iterator[tuple[Path, Record, Difference]]:
    """What the headers of results have otherwise than these specs, by the path of each result: the header's place, the
    header, and the difference. A result without a header has none."""
    for path, spec in specs.items():
        place = record_path(path)
        if record := read_record(place):
            for change in differences(record.params, json.loads(spec)):
                yield place, record, change
