"""How the process of a job begins and ends: with a log, and with nothing that outlives it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def speak_into(log: str | Path) -> None:
    """Let all that this process and its children print go to a file, and let nobody ask questions."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number, replaced in enumerate((nothing, file, file)):
        os.dup2(replaced, number)
    for opened in (file, nothing):
        os.close(opened)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")


def end_with_parent(number: int, parent: int) -> None:
    """Let the kernel send this process a signal when its parent ends."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it has ended before
            os.kill(os.getpid(), number)


def run_module(name: str, *arguments: str) -> int:
    """Run ``python -m name arguments…``; its exit status.

    It finds the modules that this process finds, and ends with it.
    """
    parent = os.getpid()
    return subprocess.run(
        [sys.executable, "-m", name, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: end_with_parent(signal.SIGKILL, parent),
    ).returncode


def end_children_first() -> None:
    """Let a signal that ends this process end first what it has started."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    for process in list(_descendants(os.getpid())):  # listed before the first kill: a killed process has no children
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _descendants(process: int) -> Iterator[int]:
    """The processes that one has started, and those that they have; none where the system does not say."""
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread has ended meanwhile
            for child in map(int, listed.read_text(encoding="utf-8").split()):
                yield child
                yield from _descendants(child)
