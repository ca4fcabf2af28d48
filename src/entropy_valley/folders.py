"""Folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(folder: str | Path) -> Iterator[Path]:
    """Yield a new folder beside ``folder`` that takes its place only when the block succeeds.

    What was at ``folder`` is replaced. A block that raises leaves it as it was.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        new, old = temporary / "new", temporary / "old"
        new.mkdir()  # mkdtemp's own folder is closed to others
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(temporary)


def synchronise(folder: Path) -> None:
    """Have every file of ``folder`` on disk before anything points to it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
