"""What a result was made from: a record beside it, which its job writes last and the jobs that read it check.

The record of ``canvas.jsonl`` is ``canvas.made.json``: the rule and its params, the digest of every input, digest and
size of every output. It is no output of a rule. A result without one, from before there were records, is read as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entropy_valley import digest_cache, files
from entropy_valley.errors import InputError

ENDING = ".made.json"
CARD = "README.md"  # in a whole folder: for people, who may edit it
REMEDY = "Remove it and run again."


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


def record_path(path: str | Path) -> Path:
    """Where the record of a job is whose first output is ``path``."""
    return Path(path).with_suffix(ENDING)


def read_record(place: Path) -> Record | None:
    """The record in a file; None without one. A damaged one is an InputError."""
    if not place.is_file():
        return None
    try:
        return Record(**json.loads(place.read_bytes()))
    except (TypeError, ValueError):
        raise InputError(place, "is no record of a result", REMEDY) from None


def record_of(path: str | Path) -> Record | None:
    """The record that describes a file: the one named after it, or after the first output of the same job."""
    path = Path(path)
    for place in (record_path(path), *sorted(path.parent.glob(f"*{ENDING}"))):
        record = read_record(place)
        if record and path.name in record.outputs:
            return record
    return None


def require_as_made(path: str | Path) -> str:
    """The digest of a file. Raises InputError if it is missing, or not as the job wrote it that its record names."""
    if not Path(path).is_file():
        raise InputError(path, "file not found", "Check the path, or run the rule that makes it.")
    return _checked(path, files.file_digest(path))


def require_same_commit(out: Path, found: dict[str, Any]) -> None:
    """Raise InputError if the results are from another commit: of a repository without a pin, the newest may change."""
    known = files.read_json(out) if out.is_file() else found
    if known["revision"] != found["revision"]:
        problem = f"the results are from commit {known['revision']}, but the folder holds {found['revision']}"
        raise InputError(out, problem, f"Set `revision` to the one that you mean, or remove {out}.")


def _checked(path: str | Path, digest: str) -> str:
    record = record_of(path)
    if record and (written := record.outputs[Path(path).name]["digest"]) != digest:
        problem = f"not as the rule {record.rule} wrote it: its digest is {digest[:12]}, that of then {written[:12]}"
        raise InputError(path, problem, REMEDY)
    return digest


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
    of a checkpoint's folder. The block may add inputs and facts to the record that it gets. With ``whole_folder`` every
    file in the folder of the first output is an output.

    The record is written last. Where a job was killed, the old one stays: it still holds for the old outputs, and if
    some are new already, nobody reads these before the job is repeated.
    """
    read = {str(path): require_as_made(path) for path in inputs}
    read |= {str(path): digest for path, digest in (known or {}).items() if digest}
    place, record = record_path(outputs[0]), Record(rule, params, read, {}, {})
    yield record
    written = _contents(place.parent) if whole_folder else map(Path, outputs)
    record.outputs.update({str(path.relative_to(place.parent)): _written(path) for path in written})
    _write(place, record)


def _contents(folder: Path) -> list[Path]:
    kept_beside = (ENDING, digest_cache.ENDING, CARD)
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith(kept_beside)]


def _written(path: Path) -> dict[str, Any]:
    return {"digest": files.file_digest(path), "bytes": path.stat().st_size}


def _write(place: Path, record: Record) -> None:
    content = dataclasses.asdict(record)
    if not record.facts:
        del content["facts"]
    files.write_json(place, content)
