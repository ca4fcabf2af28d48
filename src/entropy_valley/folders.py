"""Folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
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


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process of this or another workflow is in this block with ``folder``."""
    from filelock import FileLock, Timeout

    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"{folder}: another workflow is at it; waiting for its end", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def once(folder: Path, fill: Callable[[Path], None]) -> None:
    """Have ``fill`` make ``folder`` unless it is there, also after waiting for another that makes it.

    ``fill`` gets a folder beside, which has what an earlier try left there and is renamed when ``fill`` succeeds.
    """
    if folder.is_dir():  # perhaps where nobody may write a lock
        return
    with alone(folder):
        if not folder.is_dir():
            work = folder.with_name(f".{folder.name}.part")
            fill(work)
            work.rename(folder)


def synchronise(folder: Path) -> None:
    """Have every file of ``folder`` on disk before anything points to it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
