"""What a run of many jobs lets through to the terminal: how far they are, and errors. All else is in logs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from snakemake_interface_logger_plugins.common import LogEvent

from entropy_valley.experiment.plan import files

FEW = 12  # jobs: of no more than these, all is said
SHARE, SECONDS = 20, 120  # said is how far they are: so many times in all, and after so much time
TICK = 1.0  # seconds between looks at the clock
LISTED = 8  # most running jobs by name
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
    where they are more than a few. ``say`` tells how many of how many jobs are done, by a record that is ``due``;
    ``now`` is a clock.

    Snakemake's own records of this come only when a job ends, and before the next one begins.
    """

    def __init__(
        self,
        count: Callable[[], int],
        many: Callable[[], None],
        say: Callable[[int, int], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._count, self._many, self._say, self._now = count, many, say, now
        self._jobs: dict[int, tuple[str, float]] = {}  # name and start
        self._total, self._done, self._said, self._at = 0, 0, 0, now()

    def watch(self) -> None:
        """Look at the clock, in a thread that ends with the process."""

        def look() -> None:
            while True:
                time.sleep(TICK)
                self.look()

        threading.Thread(target=look, daemon=True).start()

    def filter(self, record: logging.LogRecord) -> bool:
        event = getattr(record, "event", None)
        if event is LogEvent.RUN_INFO:
            self._total = self._count()
            if self._total > FEW:
                self._many()
        if self._total <= FEW:
            return True
        if event is LogEvent.JOB_INFO:
            self._jobs[record.jobid] = job_name(record), self._now()
        elif event is LogEvent.JOB_FINISHED:
            self._jobs.pop(record.job_id, None)
        elif event is LogEvent.JOB_ERROR:
            self._jobs.pop(record.jobid, None)
        elif event is LogEvent.PROGRESS:
            self._done = record.done
            return record.done == record.total or hasattr(record, "due")
        elif event is None and record.levelno <= logging.INFO:
            return not str(record.msg).startswith(NOISE)
        return event not in (LogEvent.JOB_INFO, LogEvent.JOB_STARTED, LogEvent.JOB_FINISHED)

    def look(self) -> None:
        """Say how far the jobs are, if it is time to."""
        more, since = (self._done - self._said) * SHARE >= self._total, self._now() - self._at
        if self._jobs and (more or since >= SECONDS):
            self._said, self._at = self._done, self._now()
            self._say(self._done, self._total)

    def running(self) -> str:
        """The jobs that run, in print, and how long those have run that take minutes."""
        jobs = [(name, (self._now() - start) / 60) for name, start in list(self._jobs.values())]
        said = [f"{name} ({minutes:.0f} min)" if minutes >= 1 else name for name, minutes in jobs]
        return f", now: {files(said, LISTED, 'jobs')}" if said else ""
