"""Folders: written whole or not at all, made once, and locked while a job works on them."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from entropy_valley.files import naming


@contextlib.contextmanager
def atomic(folder: str | Path) -> Iterator[Path]:
    """Yield a new folder beside ``folder``. It replaces ``folder`` when the block succeeds, else it is removed.

    A kill between the two steps of the replacement leaves no folder, and the job makes it again.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with naming(folder):
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            new = temporary / "new"
            new.mkdir()  # others may not read the folder that mkdtemp makes
            yield new
            if folder.exists():
                folder.rename(temporary / "old")
            new.rename(folder)
        finally:
            shutil.rmtree(temporary)


def make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make ``folder`` with ``fill`` unless it exists.

    ``fill`` gets a work folder beside it, with the files that an earlier try left; it is renamed to ``folder`` when
    ``fill`` succeeds. Only one process fills it; the others wait.
    """
    if folder.is_dir():  # without a lock: its parent may be read-only
        return
    with locked(folder):
        if not folder.is_dir():
            work = folder.with_name(f".{folder.name}.part")
            fill(work)
            work.rename(folder)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, a file beside it; wait while another process holds it, of any workflow."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"{folder}: another job is using it; waiting", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
