"""Start the command of a job: ``python -m entropy_valley.launch --log LOG [--gpus N] [--results R] -- COMMAND …``.

- **Log.** What the command says on standard error goes to the terminal and into the log, to the last line; into the
  log alone if the variable ``ENTROPY_VALLEY_IN_LOGS`` is set, as a run of many jobs does. Each attempt has a log of its
  own: LOG is the newest, and those of attempts that failed stay beside it, as ``x.1.log`` for ``x.log``.
- **Signals** are passed on. The command and all that it has started end with this process, and this process ends with
  the one that has started it: a cancelled job leaves nothing behind.
- **GPUs.** With ``--gpus`` the command sees as many free GPUs, see :mod:`entropy_valley.gpus`. Torch reserves
  their memory in segments that can grow, so passes of many sizes leave fewer gaps; a ``PYTORCH_ALLOC_CONF`` is kept.
- **What it took.** With ``--results`` each attempt adds a line to a table, see :mod:`entropy_valley.usage`. That of
  ``R/logs/train/x.log`` is ``R/benchmarks/train/x.tsv``.

The exit status is the command's, and 128 more than the number of a signal that ended it. Every job of the workflow
starts with this file, so it imports next to nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from argparse import REMAINDER, ArgumentParser
from collections.abc import Iterator, Sequence
from types import FrameType

from entropy_valley import errors, gpus
from entropy_valley.usage import Usage

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1
IN_LOGS = "ENTROPY_VALLEY_IN_LOGS"
ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # torch's variable, and its former name
STRAGGLERS = 2.0  # seconds that what a finished command has left running may still speak
_libc = ctypes.CDLL(None)


class Log:
    """The log of one attempt, and the terminal: what is said goes to both."""

    def __init__(self, path: str) -> None:
        self.path, self.attempt, number = path, path, 0
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        stem, ending = os.path.splitext(path)
        file = None
        while file is None:
            number += 1
            self.attempt = f"{stem}.{number}{ending}"
            with contextlib.suppress(FileExistsError):
                file = os.open(self.attempt, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self._sinks = [file] if os.environ.get(IN_LOGS) else [sys.stderr.fileno(), file]
        self._link()

    def _link(self) -> None:
        """Snakemake removes LOG before each attempt: a link, so that only the name goes."""
        link = f"{self.attempt}.link"
        try:
            os.symlink(os.path.basename(self.attempt), link)
            os.replace(link, self.path)
        except OSError:  # a file system without links: failed attempts do not stay
            os.replace(self.attempt, self.path)
            self.attempt = self.path

    def write(self, content: bytes) -> None:
        """Write to both. One that cannot be written to any more (a full disk, a closed terminal) is left out."""
        for sink in list(self._sinks):
            try:
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(sink, rest) :]
            except OSError:
                self._sinks.remove(sink)

    def say(self, text: str) -> None:
        self.write(f"{text}\n".encode())

    def finished(self) -> None:
        """The command has succeeded: its log needs no number."""
        os.replace(self.attempt, self.path)


class Command:
    """A command in a process group of its own. It hears of a signal once, also where a terminal sends it to all."""

    def __init__(self, command: Sequence[str], keep: Sequence[int]) -> None:
        """Start it. ``keep``: the files that it holds open until its end, the locks of its GPUs."""
        parent = os.getpid()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,
            pass_fds=keep,
            preexec_fn=lambda: end_with_parent(signal.SIGKILL, parent),
        )

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def wait(self, log: Log) -> int:
        """Copy what it says into ``log`` until it has ended and all is copied; its exit status."""
        reader = threading.Thread(target=self._read, args=[log], daemon=True)
        reader.start()
        status = self._process.wait()
        reader.join(STRAGGLERS)
        self.signal(signal.SIGKILL)  # what it has left running
        reader.join(STRAGGLERS)
        return status if status >= 0 else 128 - status

    def _read(self, log: Log) -> None:
        while content := os.read(self._process.stderr.fileno(), 65536):
            log.write(content)


def end_with_parent(number: int, parent: int) -> None:
    """Let the kernel send this process a signal when its parent ends."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it has ended before
            os.kill(os.getpid(), number)


@contextlib.contextmanager
def _passing_on(commands: Sequence[Command]) -> Iterator[None]:
    """Pass signals on to the command; before there is one, end by them."""

    def pass_on(number: int, _: FrameType | None) -> None:
        if not commands:
            raise SystemExit(128 + number)
        commands[0].signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def launch(command: Sequence[str], log: Log, count: int, table: str | None) -> int:
    """Run a command with ``count`` GPUs, and add what it took to a table; its exit status."""
    commands: list[Command] = []
    with _passing_on(commands), gpus.taken(count, os.environ, log.say) as (variables, locks):
        usage = Usage(table, count) if table else None
        os.environ.update(variables | (usage.variables if usage else {}))
        if count and not any(name in os.environ for name in ALLOCATOR):
            os.environ[ALLOCATOR[0]] = "expandable_segments:True"
        commands.append(Command(command, locks))
        status = commands[0].wait(log)
        if usage:
            _write(usage, status, log)
    if status > 128 and status - 128 != signal.SIGINT:  # python itself says that the user has stopped it
        log.say(f"error: ended by {_named(status - 128)}")
    return status


def _write(usage: Usage, status: int, log: Log) -> None:
    """A full disk fails no job that has succeeded."""
    try:
        usage.write(status)
    except OSError as error:
        log.say(f"{error.filename}: {error.strerror}; what this job took is not kept")


def _named(number: int) -> str:
    """A signal for people."""
    if number == signal.SIGKILL:
        return "SIGKILL: killed, perhaps because memory ran out"
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def main() -> None:
    parser = ArgumentParser(prog="python -m entropy_valley.launch", description=__doc__.splitlines()[0])
    parser.add_argument("--log", required=True, help="the log of the newest attempt")
    parser.add_argument("--gpus", type=int, default=0, help="how many GPUs the command takes")
    parser.add_argument("--results", help="the folder of logs/ and benchmarks/; without it nothing is measured")
    parser.add_argument("command", nargs=REMAINDER, help="-- and the command")
    options = parser.parse_args()
    end_with_parent(signal.SIGTERM, os.getppid())
    try:
        log, table = Log(options.log), None
    except OSError as error:  # a full disk, or a folder that may not be written to
        sys.exit(f"error: {error.filename}: {error.strerror}")
    if options.results:
        name = os.path.relpath(options.log, f"{options.results}/logs")
        table = f"{options.results}/benchmarks/{os.path.splitext(name)[0]}.tsv"
    try:
        status = launch(options.command[options.command[:1] == ["--"] :], log, options.gpus, table)
    except errors.InputError as error:
        log.say(f"error: {error}")
        status = 2
    except OSError as error:  # no such command, or no folder for locks
        log.say(f"error: {error.filename}: {error.strerror}")
        status = 127
    if status == 0:
        log.finished()
    sys.exit(status)


if __name__ == "__main__":
    main()
