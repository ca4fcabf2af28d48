"""What every script of the workflow does before and after its own work.

A script is ``with job_of(snakemake) as job:`` and the calls of a few library functions. What takes long to load, or
reads the environment when it is loaded, is imported inside the block.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from entropy_valley import errors, files, gpus, locks
from entropy_valley.launch import end_with_parent

OFFLINE = "HF_HUB_OFFLINE"
_held = contextlib.ExitStack()  # the locks of this process's GPUs, until it ends


@dataclass(frozen=True)
class Job:
    """``params`` is what the result depends on, as its record has it; ``spec`` the same without ``made_from``, as
    computations and keys use it. ``how`` says where things are and how the job runs. ``input`` and ``output`` are
    Snakemake's: their items have names or numbers."""

    rule: str
    params: dict[str, Any]
    spec: dict[str, Any]
    how: dict[str, Any]
    input: Any
    output: Any
    threads: int


@contextlib.contextmanager
def job_of(snakemake: Any) -> Iterator[Job]:
    """The job of a script, from the object that Snakemake gives it.

    What the process says goes into the log. It ends with the process that started it, and what it has started ends with
    it. It takes as many GPUs as the rule asks for, see :mod:`entropy_valley.gpus`, checked before the first use where
    ``how`` has a ``check``. A job whose ``how`` has no ``confirm`` reads nothing from the network. Bad input ends it with
    one line and exit status 2.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    end_with_parent(signal.SIGTERM, os.getppid())
    with errors.in_one_line():
        if snakemake.log:
            speak_into(snakemake.log[0])
        how = dict(snakemake.params.get("how") or {})
        if "confirm" not in how:
            os.environ[OFFLINE] = "1"
        take_gpus(snakemake.resources.get("gpu", 0), how.get("check"))
        params = json.loads(snakemake.params.spec)
        spec = {key: value for key, value in params.items() if key != "made_from"}
        yield Job(snakemake.rule, params, spec, how, snakemake.input, snakemake.output, snakemake.threads)


def speak_into(log: str) -> None:
    """Let all that this process and its children print go to a file, and let nobody ask questions."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")


def take_gpus(count: int, check: Mapping[str, Any] | None = None) -> None:
    """Wait for free GPUs and keep them until the process ends; nothing where a scheduler has given it some.

    ``check``: the ``subject`` of :mod:`entropy_valley.checking`, and the ``folder`` of what was checked; None: nothing is
    checked.
    """
    variables, _ = _held.enter_context(gpus.taken(count, os.environ, _say))
    os.environ.update(variables)
    if check and count:
        require_checked(check["folder"], {**check["subject"], "processes": count})


def require_checked(folder: str, subject: Mapping[str, Any]) -> None:
    """Check once whether this environment's jobs run on such GPUs; a check that fails ends this process."""
    environment = [sys.prefix, gpus.device_name(subject["device"]), subject]
    passed = Path(folder, f"{files.digest(environment)}.txt")
    with locks.locked(passed):  # of jobs that begin together one checks, and the others wait
        if passed.is_file():
            return
        command = [sys.executable, "-m", "entropy_valley.checking", files.canonical(subject), str(passed)]
        if subprocess.run(command, env={**os.environ, OFFLINE: "1"}).returncode:
            remedy = "Correct what the lines above say, or set `check: false` in the config."
            raise errors.InputError("check", "this machine does not run the jobs of this config", remedy)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _end(number: int, _: FrameType | None) -> None:
    """End what this process has started, then itself, as the signal does that it got."""
    for process in _descendants(os.getpid()):
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
