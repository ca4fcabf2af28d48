"""Folders: written whole or not at all, made once, put where another one is in one step where the system can."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from entropy_valley.files import naming
from entropy_valley.locks import locked

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@contextlib.contextmanager
def atomic(folder: str | Path) -> Iterator[Path]:
    """Yield a new folder beside ``folder``. It replaces ``folder`` when the block succeeds, else it is removed."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with naming(folder):
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            new = temporary / "new"
            new.mkdir()  # others may not read the folder that mkdtemp makes
            yield new
            _replace(folder, new, temporary / "old")
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


def _replace(folder: Path, new: Path, old: Path) -> None:
    """Put ``new`` where ``folder`` is, if it is; another process may do the same.

    Linux exchanges them in one step on most file systems. Elsewhere the folder is moved to ``old`` first: a kill
    between the two steps leaves none, and the job makes it again.
    """
    while not _exchanged(new, folder):
        try:
            return new.replace(folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            folder.rename(old)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system cannot, or one does not exist."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    return renameat2 is not None and renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0
