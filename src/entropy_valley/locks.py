"""The lock of a folder, beside it: for processes of this and of other workflows."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

NO_FLOCK = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # how file systems say that they have none


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``; wait while another process of this or another workflow holds it.

    On a file system without ``flock`` the lock is a file: a process that is killed leaves it, and the next one on the
    same machine removes it; on another machine somebody has to.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = folder.with_name(f".{folder.name}.lock")
    try:
        lock = _acquired(FileLock(place, fallback_to_soft=False), folder)
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
        lock = _acquired(SoftFileLock(place.with_suffix(".softlock")), folder)
    try:
        yield
    finally:
        lock.release()


def _acquired(lock: BaseFileLock, folder: Path) -> BaseFileLock:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        stale = f" (if none is, remove {lock.lock_file})" if isinstance(lock, SoftFileLock) else ""
        print(f"{folder}: another job is using it; waiting{stale}", file=sys.stderr, flush=True)
        lock.acquire()
    return lock
