"""Puts a folder where another one is, in one step where the system can."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def replace(folder: Path, new: Path, old: Path) -> None:
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
