"""What goes wrong in a job: each fault is armed in the job's own process, before its script runs."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree")


def on_changes(tell: Callable[[], None]) -> None:
    """Tell before each operation by which Python changes a file or folder below the working folder."""
    here = Path.cwd()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _CHANGES and not (event == "open" and (arguments[2] or 0) & _WRITING):
            return
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike) and Path(os.fsdecode(path)).absolute().is_relative_to(here):
            tell()

    sys.addaudithook(hook)


@dataclass(frozen=True)
class Counted:
    """No fault: the job's operations on files, a byte for each in the file ``path``."""

    path: Path

    def arm(self) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        on_changes(lambda: os.write(file, b"."))

    def read(self) -> int:
        return self.path.stat().st_size


@dataclass(frozen=True)
class KilledBefore:
    """SIGKILL before the job's operation of this number, from 1."""

    operation: int

    def arm(self) -> None:
        left = iter(range(self.operation - 1))

        def kill() -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        on_changes(kill)


@dataclass(frozen=True)
class NoMoreThan:
    """No file can grow beyond this number of bytes: the write that would pass it writes what fits and fails, as on a
    full disk. With ``killed`` the job dies of it, in the middle of that write."""

    size: int
    killed: bool = False

    def arm(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if self.killed else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


@dataclass(frozen=True)
class MayNotWrite:
    """The folder is read-only, for root too: it gives up its privileges."""

    folder: str

    def arm(self) -> None:
        Path(self.folder).chmod(0o555)
        give_up_privileges()


def give_up_privileges() -> None:
    """Let permissions hold for root as for anybody, here and in what is started from here."""
    libc, header, nothing = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    libc.capset(header, nothing)
