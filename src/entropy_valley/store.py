"""A store of finished values by content key, so that nothing is computed twice.

A folder of shards, JSON Lines of ``{"key": …, "value": …}``. Each writer has its own shard, so no locks are needed and
network file systems are safe. An incomplete last line, after a kill, is ignored. Deleting the folder only costs time.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import IO, Any, Self

from entropy_valley import files


class Store:
    """A mapping from content keys (see :func:`files.digest`) to JSON values, kept in ``folder``.

    With ``enabled=False`` (config key ``store``) it reads and writes nothing.
    """

    def __init__(self, folder: str | Path, enabled: bool = True) -> None:
        self._folder, self._enabled = Path(folder), enabled
        self._shard: IO[str] | None = None
        self._values: dict[str, Any] = self._read() if enabled else {}

    def get(self, key: str) -> Any | None:
        """The value of ``key``; None if there is none."""
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Store a value. When this returns, it survives a kill of the process."""
        if not self._enabled:
            return
        self._values[key] = value
        shard = self._open()
        shard.write(files.canonical({"key": key, "value": value}) + "\n")
        shard.flush()

    def __len__(self) -> int:
        return len(self._values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._shard is not None:
            self._shard.close()

    def _open(self) -> IO[str]:
        if self._shard is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._shard = open(  # noqa: SIM115 - closed with the store
                self._folder / f"{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl",
                "x",
                encoding="utf-8",
            )
        return self._shard

    def _read(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for shard in sorted(self._folder.glob("*.jsonl")):
            for line in shard.read_text(encoding="utf-8", errors="replace").split("\n"):
                entry = _entry(line)
                if entry is not None:
                    values[entry["key"]] = entry["value"]
        return values


def _entry(line: str) -> dict[str, Any] | None:
    """The entry of a line; None for the incomplete last line of a killed writer."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) and entry.keys() == {"key", "value"} else None
