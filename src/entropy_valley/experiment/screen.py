"""What a run of many jobs lets through to the terminal: how far they are, and errors. All else is in logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from snakemake_interface_logger_plugins.common import LogEvent

from entropy_valley.experiment.plan import files

FEW = 12  # jobs: of no more than these, all is said
SHARE, SECONDS = 20, 120  # said is how far they are: so many times in all, and after so much time
NOISE = ("Select jobs", "Removing temporary", "Touching output")
HIDDEN = ("session", "environment")  # wildcards that say nothing to people


def shown(wildcards: Mapping[str, str]) -> dict[str, str]:
    """The wildcards of a job that say something to people."""
    return {name: value for name, value in wildcards.items() if name not in HIDDEN and value != "0of1"}


def job_name(record: logging.LogRecord) -> str:
    """The rule of a job and its cell, from Snakemake's record of its start."""
    return " ".join([record.rule_name, ".".join(shown(record.wildcards).values())]).strip()


class Progress(logging.Filter):
    """Filters Snakemake's records. ``count`` says how many jobs a run has, once it is known, and ``many`` is called
    where they are more than a few; ``now`` is a clock."""

    def __init__(
        self, count: Callable[[], int], many: Callable[[], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._count, self._many, self._now = count, many, now
        self._jobs: dict[int, str] = {}
        self._total, self._said, self._at = 0, 0, now()

    def filter(self, record: logging.LogRecord) -> bool:
        event = getattr(record, "event", None)
        if event is LogEvent.RUN_INFO:
            self._total = self._count()
            if self._total > FEW:
                self._many()
        if self._total <= FEW:
            return True
        if event is LogEvent.JOB_INFO:
            self._jobs[record.jobid] = job_name(record)
        elif event is LogEvent.JOB_FINISHED:
            self._jobs.pop(record.job_id, None)
        elif event is LogEvent.JOB_ERROR:
            self._jobs.pop(record.jobid, None)
        elif event is LogEvent.PROGRESS:
            return self._due(record.done, record.total)
        elif event is None and record.levelno <= logging.INFO:
            return not str(record.msg).startswith(NOISE)
        return event not in (LogEvent.JOB_INFO, LogEvent.JOB_STARTED, LogEvent.JOB_FINISHED)

    def _due(self, done: int, total: int) -> bool:
        """Whether it is time to say how far the jobs are."""
        if done < total and (done - self._said) * SHARE < total and self._now() - self._at < SECONDS:
            return False
        self._said, self._at = done, self._now()
        return True

    def running(self) -> str:
        """The jobs that run, in print."""
        return f", now: {files(self._jobs.values(), noun='jobs')}" if self._jobs else ""
