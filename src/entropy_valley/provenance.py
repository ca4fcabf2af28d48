"""What a result was made from: a record beside it, which its job writes last and the jobs that read it check.

The record of ``train.jsonl`` is ``train.made.json``, that of the rows of a set is their header: the rule and its
params, the digest of every input, digest and size of every output. Only a header is an output of a rule itself. A
result without a record is read as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entropy_valley import digest_cache, files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS

ENDING = ".made.json"
CODE = {".py", ".json", ".csv", ".tex", ".html", ".css", ".md"}  # the endings of the package's files
CARD = "README.md"  # in a whole folder: for people, who may edit it
DEV_COPY, COPIED = ("test", "dev.jsonl"), f"train{ENDING}"  # a test set without a record: a copy of the corpus's file


@dataclass(frozen=True)
class Record:
    """``inputs`` has digests by path; ``outputs`` has ``digest`` and ``bytes`` by file name; ``facts`` is whatever else
    a job says about its result."""

    rule: str
    params: Any
    inputs: dict[str, str]
    outputs: dict[str, dict[str, Any]]
    facts: dict[str, Any] = field(default_factory=dict)

    def matches(self, params: Any) -> bool:
        """Whether it was made by these params, given as values or as JSON text."""
        return self.params == (json.loads(params) if isinstance(params, str) else params)

    @property
    def text(self) -> str:
        """The params as the JSON text that a rule has."""
        return files.canonical(self.params)

    def read(self, path: Path, content: bytes) -> None:
        """Check an input that the job has just read, as :func:`require_as_made` does, and note it."""
        self.inputs[str(path)] = _checked(path, files.bytes_digest(content))

    def describes(self, folder: Path) -> bool:
        """Whether every output in ``folder`` is still as it was written."""
        return all((folder / name).is_file() and _written(folder / name) == said for name, said in self.outputs.items())

    def require(self, folder: Path, digests: Mapping[str, str]) -> None:
        """Raise InputError for the first output of which ``digests``, by name, say that it is not as it was written."""
        for name, digest in digests.items():
            written = self.outputs.get(name, {}).get("digest", digest)
            if written != digest:
                problem = (
                    f"not as the rule {self.rule} wrote it: its digest is {digest[:12]}, that of then {written[:12]}"
                )
                raise InputError(folder / name, problem, f"Remove {self._first(folder, name)} and run again.")

    def _first(self, folder: Path, otherwise: str) -> Path:
        """The output that the record is named after: without it, Snakemake runs the job again."""
        named = (folder / name for name in self.outputs if record_path(folder / name).is_file())
        return next(named, folder / otherwise)


def record_path(path: str | Path) -> Path:
    """Where the record of a job is whose first output is ``path``; that of a set is its header."""
    return Path(path).with_suffix(".json" if Path(path).name in (TRANSLATIONS, SCORES) else ENDING)


def parse(content: bytes) -> Record:
    """A record from what its file holds; ValueError for anything else."""
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError("no record") from error
    said = {"facts": {}, **value} if isinstance(value, dict) else {}
    if said.keys() != Record.__dataclass_fields__.keys() or not isinstance(said["rule"], str):
        raise ValueError("no record")
    if not (_texts(said["inputs"]) and isinstance(said["outputs"], dict) and isinstance(said["facts"], dict)):
        raise ValueError("no record")
    for output in said["outputs"].values():
        if not isinstance(output, dict) or [*map(type, map(output.get, ("digest", "bytes")))] != [str, int]:
            raise ValueError("no digest and size of an output")
    return Record(**said)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def read_record(place: Path) -> Record | None:
    """The record in a file; None without one. A damaged one is an InputError."""
    if not place.is_file():
        return None
    try:
        return parse(place.read_bytes())
    except ValueError:
        raise InputError(place, "is no record of a result", "Remove the result beside it and run again.") from None


def record_of(path: str | Path) -> Record | None:
    """The record that describes a file: the one named after it, or after the first output of the same job; of a copy
    that of the job which wrote the original."""
    path = Path(path)
    copied = [path.parents[1] / COPIED] if path.parts[-2:] == DEV_COPY else []
    for place in (record_path(path), *sorted(path.parent.glob(f"*{ENDING}")), *copied):
        record = read_record(place)
        if record and path.name in record.outputs:
            return record
    return None


def stands(path: str | Path) -> bool:
    """Whether all files of the job that wrote ``path`` first are still as it wrote them; True without a record."""
    record = read_record(record_path(path))
    return record is None or record.describes(Path(path).parent)


def require_as_made(path: str | Path) -> str:
    """The digest of a file. Raises InputError if it is missing, or not as the job wrote it that its record names."""
    if not Path(path).is_file():
        raise files.not_there(path)
    return _checked(path, files.file_digest(path))


def require_whole(path: Path) -> None:
    """Raise InputError unless every output of the job that wrote ``path`` first, and its record, is as it was written.

    Their digests are computed once, see :mod:`digest_cache`. Without a record they are as they are.
    """
    record, folder = read_record(record_path(path)), path.parent
    names = list(record.outputs) if record else []
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise InputError(folder / missing[0], "file not found", f"Remove {path} and run again.")
    if record:
        record.require(folder, digest_cache.digests(folder, names))


def _checked(path: str | Path, digest: str) -> str:
    if record := record_of(path):
        record.require(Path(path).parent, {Path(path).name: digest})
    return digest


def code() -> dict[str, str]:
    """The digest of each file of the package."""
    package = Path(__file__).parent
    found = (path for path in sorted(package.rglob("*")) if path.suffix in CODE)
    return {str(path.relative_to(package)): files.file_digest(path) for path in found}


@functools.cache
def _code_digest() -> str:
    return files.digest(code())


@contextlib.contextmanager
def made(
    rule: str,
    params: Any,
    inputs: Iterable[str | Path],
    outputs: Sequence[str | Path],
    *,
    known: Mapping[str | Path, str | None] | None = None,
    whole_folder: bool = False,
) -> Iterator[Record]:
    """Keep the record of what the block makes, beside the first of the ``outputs``.

    ``inputs`` are checked first, see :func:`require_as_made`. ``known`` has the digests of others by path, such as that
    of a checkpoint's folder. The block may add inputs and facts to the record that it gets; the digest of the package's
    ``code`` is one of them. With ``whole_folder`` every file in the folder of the first output is an output.

    The record is written last. Where a job was killed, the old one stays: it still holds for the old outputs, and if
    some are new already, nobody reads these before the job is repeated.
    """
    read = {str(path): require_as_made(path) for path in inputs}
    read |= {str(path): digest for path, digest in (known or {}).items() if digest}
    place, record = record_path(outputs[0]), Record(rule, params, read, {}, {"code": _code_digest()})
    yield record
    written = _contents(place.parent) if whole_folder else map(Path, outputs)
    record.outputs.update({str(path.relative_to(place.parent)): _written(path) for path in written})
    _write(place, record)


def _contents(folder: Path) -> list[Path]:
    """The files of a result; hidden ones are digests that are kept beside it, and what killed writers leave."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return [path for path in found if not path.name.endswith((ENDING, CARD))]


def _written(path: Path) -> dict[str, Any]:
    return {"digest": files.file_digest(path), "bytes": path.stat().st_size}


def _write(place: Path, record: Record) -> None:
    files.write_json(place, dataclasses.asdict(record))
