"""What the jobs of a results folder took, from the records that each attempt leaves (:mod:`entropy_valley.usage`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.usage import COLUMNS as RECORDED

COLUMNS = ["stage", "gpu", "attempts", "failed", "hours", "gpu_hours"]


class Cost(NamedTuple):
    """What all attempts of a job took; ``gpu_hours`` are hours times the GPUs that it held."""

    hours: float
    gpu_hours: float
    attempts: int
    failed: int


def stage_hours(benchmarks: Path) -> pd.DataFrame:
    """One row for each stage and kind of GPU ("": none): its attempts and hours, in order of the hours.

    A stage is a folder of ``benchmarks``, with a table for each job, or a single job. ``hours`` are wall-clock hours of
    all attempts, as if one ran after the other; ``gpu_hours`` are these times the GPUs that the job held, those of
    attempts that ``failed`` included. Raises :class:`InputError` for a file that is no such table.
    """
    rows = [row for job, path in _jobs(benchmarks) for row in _attempts(path, job.split("/")[0])]
    attempts = pd.DataFrame(rows, columns=COLUMNS)
    whole = attempts.groupby(["stage", "gpu"], as_index=False).sum()
    return whole.sort_values(["gpu_hours", "hours"], ascending=False, ignore_index=True)


def job_costs(benchmarks: Path) -> dict[str, Cost]:
    """The cost of each job, named as its log is: ``train/en-zh.llada-8b.seed1``. A file that is no table is left out:
    it may be that of a job that is being recorded."""
    found = {}
    for job, path in _jobs(benchmarks):
        with contextlib.suppress(InputError):
            rows = list(_attempts(path, ""))
            found[job] = Cost(
                *(sum(row[name] for row in rows) for name in ("hours", "gpu_hours", "attempts", "failed"))
            )
    return found


def finished_seconds(benchmarks: Path) -> dict[str, float]:
    """Wall-clock seconds of each job whose last attempt has succeeded: of this attempt, and of those that failed right
    before it, which it continues. Raises :class:`InputError` as :func:`stage_hours` does."""
    found = {}
    for job, path in _jobs(benchmarks):
        seconds, failed = 0.0, True
        for row in _attempts(path, ""):
            seconds = row["hours"] * 3600 + (seconds if failed else 0)
            failed = bool(row["failed"])
        if not failed:
            found[job] = seconds
    return found


def _jobs(benchmarks: Path) -> Iterator[tuple[str, Path]]:
    """Every job with its table, in order of their names; those of a score are one folder further down."""
    for path in sorted(benchmarks.rglob("*.tsv")):
        yield str(path.relative_to(benchmarks).with_suffix("")), path


def _attempts(path: Path, stage: str) -> Iterator[dict[str, Any]]:
    header, *lines = (line.split("\t") for line in files.read_lines(path))
    for line in lines:
        attempt = dict(zip(header, line, strict=False))
        if tuple(header) != RECORDED or len(line) != len(RECORDED):
            raise InputError(path, "no record of a job's attempts", "Remove it.")
        hours = float(attempt["s"]) / 3600
        yield {
            "stage": stage,
            "gpu": attempt["gpu"],
            "attempts": 1,
            "failed": int(attempt["status"] != "0"),
            "hours": hours,
            "gpu_hours": hours * int(attempt["gpus"]),
        }
