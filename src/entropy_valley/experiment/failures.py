"""What the last error of a run says: which jobs failed, by what error; that a stopped run can go on; what a mistyped
target may mean."""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from snakemake_interface_logger_plugins.common import LogEvent

from entropy_valley.experiment.plan import files
from entropy_valley.experiment.screen import job_name
from entropy_valley.spelling import either

ERROR = "error: "  # how `errors.run` and `launch` begin the error that ends a job
LINES = 12  # most lines of a job's error
ERRORS = 10  # most errors of a run
NAMES = "docs/results.md has the names of files; `snakemake --list-target-rules` those of other targets."
STOPPING = "Terminating processes on user request"  # Snakemake's words after Ctrl-C, or SIGTERM
STOPPED = "Stopped. Nothing that is finished is lost: run the same command again, and it goes on from here."
UNLIKE, TIE = 0.4, 0.04  # how different a part of a path may be from what was meant; what is as likely


class Failures(logging.Filter):
    """Lets all of Snakemake's records through, and adds to the last one of a run that fails. ``near`` says which
    targets a mistyped one may mean."""

    def __init__(self, near: Callable[[str], Sequence[str]]) -> None:
        super().__init__()
        self._near, self.stopped = near, False
        self._names: dict[int, str] = {}
        self._logs: dict[int, Sequence[str]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        event = getattr(record, "event", None)
        if event is LogEvent.JOB_INFO:
            self._names[record.jobid] = job_name(record)
        elif event is None and str(record.msg).startswith(STOPPING):
            self.stopped = True
        elif event is LogEvent.JOB_ERROR and not self.stopped:
            self._logs[record.jobid] = record.log
            self._names.setdefault(record.jobid, record.rule_name)
        elif event is LogEvent.JOB_FINISHED:
            self._logs.pop(record.job_id, None)  # a second attempt has succeeded
        elif event is LogEvent.ERROR and record.exception == "MissingRuleException":
            record.msg = self._meant(record.msg)
        elif event is LogEvent.ERROR and record.exception == "WorkflowError" and (self._logs or self.stopped):
            record.msg = "\n".join([STOPPED if self.stopped else str(record.msg), *self._said()])
        return True

    def _meant(self, said: str) -> str:
        """Snakemake's error about a target, with those that it may mean."""
        found = re.search(r".*No rule to produce (.+?)(?= \(if you use|\n|$)", said, re.DOTALL)
        if not found:
            return said
        near = self._near(found[1])
        return f"{found[0]}. {f'Did you mean {either(near)}?' if near else NAMES}"

    def _said(self) -> Iterator[str]:
        """Each error once, with the jobs that it ended and a log."""
        jobs: dict[str, list[int]] = {}
        errors = {job: ended_by(logs) for job, logs in self._logs.items()}
        for job, (error, _) in errors.items():
            jobs.setdefault(error, []).append(job)
        for error, failed in list(jobs.items())[:ERRORS]:
            yield f"{files([self._names[job] for job in failed], noun='jobs')}: {error}"
            yield f"  log: {errors[failed[0]][1]}"
        if len(jobs) > ERRORS:
            yield f"… and {len(jobs) - ERRORS} more errors, see above"


def ended_by(logs: Sequence[str]) -> tuple[str, str]:
    """The error that ended a job, and which of its logs says so: what follows the last "error:", else the last line."""
    for path in filter(os.path.isfile, logs):
        with open(path, encoding="utf-8", errors="replace") as log:
            lines = [line.rstrip() for line in log.read().splitlines() if line.strip()]
        begin = max((at for at, line in enumerate(lines) if line.startswith(ERROR)), default=-1)
        if lines:
            return "\n  ".join(lines[begin:][:LINES]).removeprefix(ERROR), path
    return "it has left no word", ", ".join(logs) or "none"


def nearest_paths(target: str, paths: Iterable[str], most: int = 3) -> list[str]:
    """The paths below the folder of results that a mistyped target may mean, the likeliest first: those whose parts
    are the target's last ones, or much like them."""
    asked, found = target.split("/"), {}
    for path in paths:
        parts = path.split("/")
        unlike = list(map(_unlike, parts, asked[-len(parts) :]))
        if len(parts) <= len(asked) and max(unlike) <= UNLIKE:
            found[path] = sum(unlike)
    near = sorted(found, key=found.__getitem__)
    return [path for path in near if found[path] - found[near[0]] < TIE][:most]


@functools.cache
def _unlike(one: str, other: str) -> float:
    """0 for the same, 1 for what has nothing in common."""
    return 0.0 if one == other else 1 - SequenceMatcher(None, one, other).ratio()
