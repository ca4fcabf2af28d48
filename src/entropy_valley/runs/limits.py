"""What jobs on GPUs request of a cluster: time and memory; and into how many shards a set is divided, so that each fits
into the longest time limit that the cluster grants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from entropy_valley.config import Experiment
from entropy_valley.runs.work import GPU, Work

if TYPE_CHECKING:
    from entropy_valley.runs.inventory import Job

USUAL, LEAST = 60, 8_000  # minutes and MB of any other job, as in profiles/slurm/config.yaml
MARGIN, START = 1.5, 30  # times the planned minutes; minutes to check the GPU, to load a model and to compile kernels
# MB of the first attempt. A training loads its backbone once in each process.
MEMORY = {"train": 200_000, "score": 16_000} | dict.fromkeys(("translate", "shard", "diagnose", "latency"), 48_000)
CORES = {rule: 16 if rule == "train" else 4 for rule in MEMORY}  # `set-threads` of profiles/slurm/config.yaml


def minutes(experiment: Experiment, seconds: float) -> int:
    """The time limit of a job that is planned to take so many seconds. Jobs that resume may exceed it."""
    return min(experiment.max_runtime, START + math.ceil(MARGIN * seconds / 60))


def memory(rule: str, attempt: int) -> int:
    """The MB of memory that a job requests, by its rule if it uses a GPU. The second attempt has twice as much where
    memory grows with the test sets and the grid; that of a training does not."""
    return MEMORY.get(rule, LEAST) * (1 if rule == "train" else min(attempt, 2))


def shards(experiment: Experiment, job: Job) -> int:
    """Into how many shards the translation of a set is divided. It follows from the config, and from the shape of
    checkpoints in folders of the user's own, whatever is measured or downloaded by now: with another number, Snakemake
    repeats what is finished."""
    if experiment.decoding.shards != "auto":
        return experiment.decoding.shards
    if experiment.device != "cuda":
        return 1
    work = Work(experiment, expected=True).of([job])[job]
    return max(1, math.ceil(MARGIN * work / GPU / 60 / (experiment.max_runtime - START)))
