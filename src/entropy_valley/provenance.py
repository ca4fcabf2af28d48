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
from typing import Any, NamedTuple

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
    paths = (path for path in sorted(package.rglob("*")) if path.suffix in CODE)
    return {str(path.relative_to(package)): files.file_digest(path) for path in paths}


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
    digests: Mapping[str | Path, str | None] | None = None,
    whole_folder: bool = False,
) -> Iterator[Record]:
    """Keep the record of what the block makes, beside the first of the ``outputs``.

    Raises InputError if one of the ``inputs`` is missing. ``digests`` has those of others by path, such as that of
    a checkpoint's folder. The block may add inputs and facts to the record that it gets; the digest of the package's
    ``code`` is one of them. With ``whole_folder`` every file in the folder of the first output is an output.

    The record is written last. Where a job was killed, the old one stays: it still holds for the old outputs, and if
    some are new already, nobody reads these before the job is repeated.
    """
    read = {str(path): digest for path, digest in (digests or {}).items() if digest}
    for path in inputs:
        if not Path(path).is_file():
            raise files.not_there(path)
        read[str(path)] = files.kept_digest(path)
    place, record = record_path(outputs[0]), Record(rule, params, read, {}, {"code": _code_digest()})
    yield record
    written = list(map(Path, outputs))
    if whole_folder:  # without hidden files, which killed writers leave
        paths = (path for path in sorted(place.parent.rglob("*")) if path.is_file() and path.name[0] != ".")
        written = [path for path in paths if not path.name.endswith((ENDING, CARD))]
    for path in written:
        content = {"digest": files.file_digest(path), "bytes": path.stat().st_size}
        record.outputs[str(path.relative_to(place.parent))] = content
    files.write_json(place, dataclasses.asdict(record))


# --- In which keys the params of two jobs, or two configs, differ.

LONGEST = 60  # characters of a value in print
SHARED = 12  # of them, before the first that differs


class Absent:
    """The value of a key that one side does not have."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


class Difference(NamedTuple):
    """A key by its path, such as ``length_methods.ev.ratios``, and its value on either side, or ABSENT."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        """``key: before → after``. Where one of the two is long, both begin shortly before they differ."""
        texts = [repr(one) if one is ABSENT else files.canonical(one) for one in (self.before, self.after)]
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
