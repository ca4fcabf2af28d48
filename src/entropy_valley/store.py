"""A store of finished values by content key, so that nothing is computed twice.

A folder of shards, JSON Lines of ``{"key": …, "sum": …, "value": …}``; the sum is a digest of key and value, and older
lines have none. Each writer has its own shard, so no locks are needed and network file systems are safe. An incomplete
last line, after a kill, is ignored. A line that its sum belies is no answer: the value is computed again. Deleting the
folder only costs time.

At the first use the shards are read once, for the keys and where they lie; a value is parsed when it is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from entropy_valley import files

_START, _END = b'{"key":"', b'"'  # how a line of ours begins, and what ends its key
_VALUE = ',"value":'  # what stands before the value
_OPEN = 64  # shards that are open at once


class _Place(NamedTuple):
    """Where a line is: its shard, and its bytes there."""

    shard: Path
    start: int
    length: int


class Store:
    """A mapping from content keys (see :func:`files.digest`) to JSON values, kept in ``folder``.

    Without a folder (config key ``store``) it reads and writes nothing.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._shard: IO[bytes] | None = None
        self._reading: dict[Path, IO[bytes]] = {}

    def get(self, key: str, read: Callable[[Any], Any] = lambda value: value) -> Any | None:
        """The value of ``key``; None if there is none. ``read`` makes of it what is asked for; a value that is of
        another kind, at which ``read`` raises, is a damaged one."""
        for place in reversed(self._places.get(key, ())):
            entry = _entry(self._line(place))
            if entry is not None and entry["key"] == key:
                with contextlib.suppress(AttributeError, LookupError, TypeError, ValueError):
                    return read(entry["value"])
            line = place.shard.read_bytes()[: place.start].count(b"\n") + 1
            print(f"{place.shard}:{line}: a damaged value, which is computed again", file=sys.stderr, flush=True)
        return None

    def has(self, key: str) -> bool:
        """Whether there is a whole line of ``key``."""
        return any(_entry(self._line(place)) for place in self._places.get(key, ()))

    def put(self, key: str, value: Any) -> None:
        """Store a value. When this returns, it survives a kill of the process."""
        if self._folder is None:
            return
        places, shard = self._places, self._open()
        text = files.canonical(value)
        line = f'{{"key":{json.dumps(key)},"sum":"{_sum(key, text.encode())}"{_VALUE}{text}}}\n'.encode()
        places[key] = (*places.get(key, ()), _Place(Path(shard.name), shard.tell(), len(line)))
        with files.naming(Path(shard.name)):
            shard.write(line)
            shard.flush()

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._close()
        if self._shard is not None:
            with files.naming(Path(self._shard.name)):  # where the disk is full, what was put is still to be written
                self._shard.close()

    @functools.cached_property
    def _places(self) -> dict[str, tuple[_Place, ...]]:
        """Where the lines of each key are, the newest shard's last: there are several where jobs did the same work."""
        found: dict[str, tuple[_Place, ...]] = {}
        for shard in sorted(self._folder.glob("*.jsonl")) if self._folder else ():
            for key, start, length in _lines(shard):
                found[key] = (*found.get(key, ()), _Place(shard, start, length))
        return found

    def _line(self, place: _Place) -> bytes:
        file = self._reading.get(place.shard)
        if file is None:
            if len(self._reading) == _OPEN:
                self._close()
            file = self._reading[place.shard] = open(place.shard, "rb")  # noqa: SIM115 - closed with the store
        return os.pread(file.fileno(), place.length, place.start)

    def _close(self) -> None:
        while self._reading:
            self._reading.popitem()[1].close()

    def _open(self) -> IO[bytes]:
        if self._shard is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
            self._shard = open(self._folder / name, "xb")  # noqa: SIM115 - closed with the store
        return self._shard


def _lines(shard: Path) -> Iterator[tuple[str, int, int]]:
    """Key, first byte and length of each line of a shard; a line is looked into where it does not say its key at once,
    and where it is the last and incomplete."""
    start = 0
    with open(shard, "rb") as file:
        for line in file:
            if line.startswith(_START) and line.endswith(b"}\n"):
                yield _key(line), start, len(line)
            elif entry := _entry(line):
                yield entry["key"], start, len(line)
            start += len(line)


def _key(line: bytes) -> str:
    """The key that a line says it is of, as far as it can be read."""
    return line.removeprefix(_START).partition(_END)[0].decode("utf-8", "replace") if line.startswith(_START) else ""


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None for the incomplete last line of a killed writer, and for one that its sum belies."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not {"key", "value"} <= entry.keys() <= {"key", "sum", "value"}:
        return None
    if not isinstance(entry["key"], str):
        return None
    if "sum" not in entry:
        return entry
    text = line.partition(_VALUE.encode())[2].rstrip().removesuffix(b"}")
    return entry if entry["sum"] == _sum(entry["key"], text) else None


def _sum(key: str, text: bytes) -> str:
    return hashlib.blake2b(key.encode() + text, digest_size=8).hexdigest()
