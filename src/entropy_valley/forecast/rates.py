"""How much of its work a job does in a second: from the records of finished jobs, else from the paper's hours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from entropy_valley.analysis.job_costs import finished_seconds
from entropy_valley.forecast.tasks import Task

SESSION = re.compile(r"(\.\d+of\d+)?\.\d{8}-\d{6}-[0-9a-f]{8}$")  # at the end of the name of a job that several share
PAPERS = 420.0  # GPU-hours on H20 of the paper's "full experimental grid"
# Operations a second, where no job of a stage has finished. On a GPU, that with which the whole matrix of config.yaml
# takes the paper's hours; a test computes this again. On a CPU, those of the demo on two cores: small models are slow.
GPU = 4.0e13
CPU = {"pretrain": 3.6e10, "train": 1.0e10, "inference": 4.1e10, "generate": 3.4e9, "latency": 4.6e9, "comet": 2.9e10}
# Seconds of a job that runs no model, from the demo; on a GPU's machine some are larger: tens of millions of pairs.
SHORT, USUAL = 0.6, {"corpus": 2.0, "table": 2.5, "figure": 4.0, "comparison": 4.0, "train_comet": 42.0}
LONG = USUAL | {"corpus": 3 * 3600.0, "fetch_backbone": 600.0, "fetch_comet": 120.0, "fetch_dataset": 300.0}


def measured(results: str | Path) -> dict[str, float]:
    """Seconds of each job that has finished, by stage and name; those of earlier attempts, which it continues, and of
    several jobs that did the same task included. Raises InputError for a file that is no record."""
    found: dict[str, float] = {}
    for job, seconds in finished_seconds(Path(results, "benchmarks")).items():
        key = SESSION.sub("", job)
        found[key] = found.get(key, 0.0) + seconds
    return found


@dataclass(frozen=True)
class Rate:
    """Of a stage: its seconds are ``start`` of the usual ones before the work, and work / ``speed``; ``jobs`` is how
    many finished ones say so."""

    speed: float
    start: float = 1.0
    jobs: int = 0

    def seconds(self, task: Task) -> float:
        return self.start * task.start + task.work / self.speed


class Rates:
    """The rates of all stages, from finished ``tasks`` and the seconds of each."""

    def __init__(self, device: str, tasks: Iterable[Task] = (), seconds: Mapping[str, float] | None = None) -> None:
        self.device = device
        groups: dict[str, list[tuple[Task, float]]] = {}
        for task in tasks:
            if task.key in (seconds or {}) and task.work > 0:
                groups.setdefault(task.stage, []).append((task, seconds[task.key]))
        self.known = {stage: _fitted(group) for stage, group in groups.items()}

    def of(self, stage: str) -> Rate:
        return self.known.get(stage) or Rate(self._prior(stage))

    def seconds(self, task: Task) -> float:
        return self.of(task.stage).seconds(task)

    def _prior(self, stage: str) -> float:
        if stage in CPU:
            return GPU if self.device == "cuda" else CPU[stage]
        return 1 / (LONG if self.device == "cuda" else USUAL).get(stage, SHORT)


def _fitted(finished: list[tuple[Task, float]]) -> Rate:
    """The usual start, or half of the shortest job where that is less; the rest of the time is for the work."""
    start = min(1.0, *(seconds / 2 / task.start if task.start else 1.0 for task, seconds in finished))
    rest = sum(seconds - start * task.start for task, seconds in finished)
    return Rate(sum(task.work for task, _ in finished) / max(rest, 1e-9), start, len(finished))
