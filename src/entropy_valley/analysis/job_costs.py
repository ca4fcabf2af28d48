"""What the jobs of a results folder took, from the records that each attempt leaves (:mod:`entropy_valley.usage`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.usage import COLUMNS as RECORDED

COLUMNS = ["stage", "gpu", "attempts", "failed", "hours", "gpu_hours"]


def stage_hours(benchmarks: Path) -> pd.DataFrame:
    """One row for each stage and kind of GPU ("": none): its attempts and hours, in order of the hours.

    A stage is a folder of ``benchmarks``, with a table for each job. ``hours`` are wall-clock hours of all attempts, as
    if one ran after the other; ``gpu_hours`` are these times the GPUs that the job held, those of attempts that
    ``failed`` included. Raises :class:`InputError` for a file that is no such table.
    """
    rows = [row for path in sorted(benchmarks.glob("*/*.tsv")) for row in _attempts(path)]
    attempts = pd.DataFrame(rows, columns=COLUMNS)
    whole = attempts.groupby(["stage", "gpu"], as_index=False).sum()
    return whole.sort_values(["gpu_hours", "hours"], ascending=False, ignore_index=True)


def _attempts(path: Path) -> Iterator[dict[str, Any]]:
    header, *lines = (line.split("\t") for line in files.read_lines(path))
    for line in lines:
        attempt = dict(zip(header, line, strict=False))
        if tuple(header) != RECORDED or len(line) != len(RECORDED):
            raise InputError(path, "no record of a job's attempts", "Remove it.")
        hours = float(attempt["s"]) / 3600
        yield {
            "stage": path.parent.name,
            "gpu": attempt["gpu"],
            "attempts": 1,
            "failed": int(attempt["status"] != "0"),
            "hours": hours,
            "gpu_hours": hours * int(attempt["gpus"]),
        }
