"""A store of finished values by content key, so that nothing is computed twice.

A folder of shards, JSON Lines of ``{"key": …, "value": …, "sum": …}``. Each writer has its own shard, so no locks are
needed and network file systems are safe. A line whose sum is not that of its key and value, such as the last one after
a kill or an edited one, is ignored, and so is what is not a regular file. Deleting the folder only costs time.

At the first use the shards are read once, for the keys and where they lie; a value is parsed when it is asked for.
"""

import functools
import json
import os
import time
import uuid
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from entropy_valley import files, machine

_START, _END = b'{"key":"', b'"'  # how a line begins, and what ends its key
_SUM = b',"sum":"'  # what stands before its sum
_OPEN = 64  # shards that are open at once


class _Location(NamedTuple):
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

    def get(self, key: str) -> Any | None:
        """The value of ``key``; None if there is none."""
        if (place := self._lines.get(key)) is None:
            return None
        if place.shard not in self._reading:
            if len(self._reading) == _OPEN:
                self._close()
            self._reading[place.shard] = open(place.shard, "rb")  # noqa: SIM115 - closed with the store
        line = os.pread(self._reading[place.shard].fileno(), place.length, place.start)
        if line != _summed(line.rpartition(_SUM)[0]):
            return None
        try:
            return json.loads(line)["value"]
        except (ValueError, LookupError, RecursionError):  # not written by a store
            return None

    def put(self, key: str, value: Any) -> None:
        """Store a value. When this returns, it survives a kill of the process. A job that nears its time limit is
        requeued here, see :func:`.machine.nears_its_limit`."""
        if self._folder is None:
            return
        lines = self._lines  # before there is a new shard
        if self._shard is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            # The time is first, so that the newest shard is the last by name.
            name = f"{time.time_ns():020d}-{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
            self._shard = open(self._folder / name, "xb")  # noqa: SIM115 - closed with the store
        shard = self._shard
        content = f'{{"key":{json.dumps(key)},"value":{files.canonical(value)}'.encode()
        line = _summed(content)
        lines[key] = _Location(Path(shard.name), shard.tell(), len(line))
        with files.naming(Path(shard.name)):
            shard.write(line)
            shard.flush()
        if machine.nears_its_limit():
            machine.requeue()

    def __len__(self) -> int:
        return len(self._lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._close()
        if self._shard is not None:
            with files.naming(Path(self._shard.name)):  # where the disk is full, what was put is still to be written
                self._shard.close()

    @functools.cached_property
    def _lines(self) -> dict[str, _Location]:
        """Where the whole line of each key is; the newest shard's where jobs did the same work."""
        lines: dict[str, _Location] = {}
        for shard in sorted(filter(Path.is_file, self._folder.glob("*.jsonl"))) if self._folder else ():
            start = 0
            with open(shard, "rb") as file:
                for line in file:
                    if line.startswith(_START) and line.endswith(b"}\n"):
                        key = line.removeprefix(_START).partition(_END)[0].decode("utf-8", "replace")
                        lines[key] = _Location(shard, start, len(line))
                    start += len(line)
        return lines

    def _close(self) -> None:
        while self._reading:
            self._reading.popitem()[1].close()


def _summed(content: bytes) -> bytes:
    """The line of a key and a value: these, and the first digits of their digest."""
    return content + _SUM + files.bytes_digest(content)[:8].encode() + b'"}\n'
