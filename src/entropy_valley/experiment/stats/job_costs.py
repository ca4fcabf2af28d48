"""What the finished jobs of a results folder took, from Snakemake's own benchmark files."""

import csv
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from entropy_valley import files

# MB of memory that the jobs of each rule on GPUs request, a training for each process: each loads the backbone.
MEMORY = {"train": 25_000, "score": 16_000} | dict.fromkeys(("translate", "shard", "diagnose", "latency"), 48_000)


def gpus(device: str, processes: int) -> dict[str, int]:
    """How many GPUs a job holds, by its rule. ``processes``: of a training. Empty on a CPU."""
    return dict.fromkeys(MEMORY, 1) | {"train": processes} if device == "cuda" else {}


def stage_hours(benchmarks: Path, gpus: Mapping[str, int]) -> pd.DataFrame:
    """One row for each stage, in order of its hours; a stage is a rule with a benchmark: those that only show results
    have none. ``hours`` are as if one job ran after another, ``gpu_hours`` these times the GPUs of a job, see
    :func:`gpus`. Attempts that failed are not counted."""
    # A job is named after its rule: `train/en-zh.llada-8b.seed1`.
    jobs = [(job.partition("/")[0], took / 3600) for job, took in finished_seconds(benchmarks).items()]
    stages = pd.DataFrame(jobs, columns=["stage", "hours"]).groupby("stage", as_index=False).sum()
    stages["gpu_hours"] = stages["hours"] * stages["stage"].map(gpus).fillna(0)
    return stages.sort_values(["gpu_hours", "hours"], ascending=False, ignore_index=True)


def finished_seconds(benchmarks: Path) -> dict[str, float]:
    """Wall-clock seconds of each finished job by its name, such as ``train/en-zh.llada-8b.seed1``. An empty file is of
    a job that ends just now, or whose disk was full. Raises :class:`InputError` for a file that Snakemake has not
    written."""
    seconds = {}
    for path in sorted(benchmarks.rglob("*.tsv")):
        if path.stat().st_size:
            with files.readable(path, "benchmark of a job", "Remove it."):
                (row,) = csv.DictReader(files.read_lines(path), delimiter="\t")
                seconds[str(path.relative_to(benchmarks).with_suffix(""))] = float(row["s"])
    return seconds
