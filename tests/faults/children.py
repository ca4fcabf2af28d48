"""Jobs in processes forked from one that has imported what they need: a trial takes a second, most of it work."""

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from run_rule import run_script, snakemake_object

Job = Mapping[str, Any]  # what `snakemake_object` takes
LIMIT = 300  # seconds that a job may take on a busy machine
FORKED = multiprocessing.get_context("forkserver")


def prepare() -> None:
    """Let the process that is forked, which starts at the first job, import it all."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    FORKED.set_forkserver_preload(["imported"])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a job ended: its exit status, negative for the signal that killed it, and what it said."""

    status: int
    said: str

    @property
    def killed(self) -> bool:
        return self.status < 0

    @property
    def error(self) -> str:
        """The one line of an error that a user can act on; anything else fails the test."""
        (line,) = [line for line in self.said.splitlines() if line.startswith("error: ")]
        threads = self.said.count("Exception in thread ")  # TensorBoard's writer prints its own trace, and nothing ends
        assert self.status in (1, 2) and self.said.count("Traceback") == threads, self.said
        return line


class Running:
    """A job that has begun, in ``folder`` and under ``faults``."""

    def __init__(self, folder: Path, job: Job, *faults: Any) -> None:
        self._pipe, self._said = folder.with_name(f"{folder.name}.{os.urandom(4).hex()}"), b""
        os.mkfifo(self._pipe)  # no file: what is said must not meet the faults of files
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._process = FORKED.Process(target=_run, args=(folder, job, faults, self._pipe))
        self._process.start()

    def wait(self, seconds: float) -> None:
        self._process.join(seconds)

    def kill_after(self, seconds: float) -> None:
        """SIGKILL, unless the job has ended by then."""
        self.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def ended(self) -> Outcome:
        self._process.join(LIMIT)
        if self._process.is_alive():
            self._process.kill()
            raise AssertionError(f"still running after {LIMIT} s: {self._said!r}")
        with contextlib.suppress(OSError):  # one that was killed before it could speak lets nobody listen
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
        self._listener.join(LIMIT)
        return Outcome(self._process.exitcode, self._said.decode(errors="replace"))

    def _listen(self) -> None:
        with open(self._pipe, "rb", buffering=0) as pipe:
            while part := pipe.read(65536):
                self._said += part


def run(folder: Path, job: Job, *faults: Any) -> Outcome:
    return Running(folder, job, *faults).ended()


def call(folder: Path, function: Callable[[], None]) -> None:
    """Run a function of a module in ``folder``."""
    process = FORKED.Process(target=_call, args=(folder, function))
    process.start()
    process.join()
    assert process.exitcode == 0


def _call(folder: Path, function: Callable[[], None]) -> None:
    os.chdir(folder)
    function()


def _run(folder: Path, job: Job, faults: Sequence[Any], pipe: Path) -> None:
    os.chdir(folder)
    with open(pipe, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    snakemake = snakemake_object(**job)
    for fault in faults:
        fault.arm()
    run_script(job["rule"], snakemake)
