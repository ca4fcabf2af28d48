"""What a result was made from: a record beside it, which its job writes last.

The record of ``train.jsonl`` is ``train.made.json``, that of the rows of a set is their header: the rule and its
params, the digest of every input, digest and size of every output. Only a header is an output of a rule itself.
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

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS

ENDING = ".made.json"
CODE = {".py", ".json", ".csv", ".tex", ".html", ".css", ".md"}  # the endings of the package's files
CARD = "README.md"  # in a whole folder: for people, who may edit it


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


def record_path(path: str | Path) -> Path:
    """Where the record of a job is whose first output is ``path``; that of a set is its header."""
    return Path(path).with_suffix(".json" if Path(path).name in (TRANSLATIONS, SCORES) else ENDING)


def read_record(place: Path) -> Record | None:
    """The record in a file; None without one. Raises InputError for anything else."""
    if not place.is_file():
        return None
    try:
        return Record(**json.loads(place.read_bytes()))
    except (ValueError, TypeError):  # no JSON, or not these keys
        raise InputError(place, "is no record of a result", "Remove the result beside it and run again.") from None


def record_of(path: str | Path) -> Record | None:
    """The record that describes a file: the one named after it, or after the first output of the same job."""
    path = Path(path)
    for place in (record_path(path), *sorted(path.parent.glob(f"*{ENDING}"))):
        record = read_record(place)
        if record and path.name in record.outputs:
            return record
    return None


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

    Raises InputError if one of the ``inputs`` is missing. ``known`` has the digests of others by path, such as that of
    a checkpoint's folder. The block may add inputs and facts to the record that it gets; the digest of the package's
    ``code`` is one of them. With ``whole_folder`` every file in the folder of the first output is an output.

    The record is written last. Where a job was killed, the old one stays: it still holds for the old outputs, and if
    some are new already, nobody reads these before the job is repeated.
    """
    read = {str(path): _input_digest(Path(path)) for path in inputs}
    read |= {str(path): digest for path, digest in (known or {}).items() if digest}
    place, record = record_path(outputs[0]), Record(rule, params, read, {}, {"code": _code_digest()})
    yield record
    written = _contents(place.parent) if whole_folder else map(Path, outputs)
    record.outputs.update({str(path.relative_to(place.parent)): _written(path) for path in written})
    files.write_json(place, dataclasses.asdict(record))


def _input_digest(path: Path) -> str:
    if not path.is_file():
        raise files.not_there(path)
    return files.kept_digest(path)


def _contents(folder: Path) -> list[Path]:
    """The files of a result without hidden ones, which killed writers leave."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return [path for path in found if not path.name.endswith((ENDING, CARD))]


def _written(path: Path) -> dict[str, Any]:
    return {"digest": files.file_digest(path), "bytes": path.stat().st_size}
