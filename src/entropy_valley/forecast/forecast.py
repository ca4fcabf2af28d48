"""The forecast of a config: what is left to run, what it will take, and how right that is where jobs have run."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from entropy_valley.checking import needs, subject
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.findings import Finding, Findings
from entropy_valley.experiment.paths import backbone_folder, comet_folder
from entropy_valley.experiment.result import Result
from entropy_valley.experiment.written import Written
from entropy_valley.forecast.downloads import Download, downloads
from entropy_valley.forecast.rates import Rates, measured
from entropy_valley.forecast.remaining import remaining
from entropy_valley.forecast.schedule import wall_clock
from entropy_valley.forecast.tasks import Task, Tasks
from entropy_valley.forecast.work import Work


@dataclass(frozen=True)
class Stage:
    """A stage in the forecast: jobs, models that are loaded, seconds of all jobs as if one ran after the other, these
    times their GPUs, and how many finished jobs the speed is taken from."""

    name: str
    jobs: int
    loads: int
    seconds: float
    gpu_seconds: float
    finished: int


@dataclass(frozen=True)
class Hindsight:
    """Finished jobs of a stage: their seconds as forecast from those of the first run alone, and as measured."""

    stage: str
    jobs: int
    forecast: float
    measured: float

    @property
    def error(self) -> float:
        return self.forecast / self.measured - 1


class Forecast:
    """Of ``jobs``, all jobs of a config, those that others need first; of ``left``, those of them that run."""

    def __init__(
        self, experiment: Experiment, jobs: Iterable[Result], left: Mapping[Result, Finding | None] | None = None
    ) -> None:
        self.experiment, self.jobs = experiment, list(jobs)
        self.left = dict(
            left if left is not None else remaining(Findings(Written(experiment.results)), self.jobs, self.jobs)
        )
        self.work = Work(experiment)
        self._tasks = Tasks(self.work)
        self.there = [job for job in self.jobs if job not in self.left]
        self.tasks = self._tasks.of(self.left, self.there)
        self.measured = measured(experiment.results)
        self.finished = {key: one for key, one in self._tasks.of(self.there).items() if key in self.measured}
        self.rates = Rates(experiment.device, self.finished.values(), self.measured)

    @functools.cached_property
    def stages(self) -> list[Stage]:
        """The stages of the jobs that run, in their order."""
        groups: dict[str, list[Task]] = {}
        for task in self.tasks.values():
            groups.setdefault(task.stage, []).append(task)
        return [self._stage(name, group) for name, group in groups.items()]

    def _stage(self, name: str, group: list[Task]) -> Stage:
        seconds = list(map(self.rates.seconds, group))
        gpu = sum(one * task.gpus for one, task in zip(seconds, group, strict=True))
        loads = sum(task.start > 0 for task in group)
        return Stage(name, len(group), loads, sum(seconds), gpu, self.rates.of(name).jobs)

    @property
    def seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    @property
    def gpu_seconds(self) -> float:
        return sum(stage.gpu_seconds for stage in self.stages)

    def wall_clock(self, slots: int) -> float:
        """Seconds on so many GPUs, or cores where the device is the CPU."""
        return wall_clock(self.tasks, self.rates.seconds, slots, self.experiment.device == "cuda")

    @property
    def assumed(self) -> dict[str, str]:
        """Checkpoints of the jobs that run whose size nothing says, each with the model that it counts as."""
        used = dict.fromkeys(job.wildcards["backbone"] for job in self.left if "backbone" in job.wildcards)
        unknown = [name for name in used if subject.size(self.experiment, name) is None]
        found = {backbone_folder(self.experiment, name): "LLaDA-8B" for name in unknown}
        given = comet_folder(self.experiment)
        scored = any(task.stage == "comet" for task in self.tasks.values())
        own = given == self.experiment.scoring.comet.checkpoint  # and neither trained here nor of the hub
        return found | ({given: "COMET-22"} if scored and own and not Path(given).exists() else {})

    @property
    def downloads(self) -> list[Download]:
        return downloads(self.experiment, ((job.rule, job.wildcards) for job in self.left))

    @property
    def disk(self) -> Counter[str]:
        """Bytes that the jobs leave on the disk, by what they are."""
        jobs = [needs.Job(job.rule, job.wildcards) for job in self.left]
        sizes: Counter[str] = Counter()
        for _, what, size in needs.left(self.experiment, jobs):
            sizes[what] += size
        return +sizes

    def by_run(self) -> dict[tuple[str, str, str], float]:
        """The seconds of jobs on GPUs, or of all jobs on a CPU, by direction, backbone and seed."""
        found: dict[tuple[str, str, str], float] = {}
        for task in self.tasks.values():
            of = task.results[0].wildcards
            if "seed" in of and task.stage != "comet":
                key = (of["direction"], of["backbone"], of["seed"])
                found[key] = found.get(key, 0.0) + self.rates.seconds(task) * self._counted(task)
        return found

    def _counted(self, task: Task) -> int:
        return task.gpus if self.experiment.device == "cuda" else 1

    @property
    def hindsight(self) -> list[Hindsight]:
        """For each stage with more finished jobs than those of the first run."""
        return hindsight(self.experiment.device, self.finished, self.measured)


def hindsight(device: str, tasks: Mapping[str, Task], measured: Mapping[str, float]) -> list[Hindsight]:
    """How right a forecast from the first run's jobs would have been for all others."""
    known = first_run(tasks)
    rates, rest = Rates(device, known.values(), measured), {}
    for key, task in tasks.items():
        if key not in known and task.stage in rates.known:
            rest.setdefault(task.stage, []).append(task)
    return [
        Hindsight(stage, len(of), sum(map(rates.seconds, of)), sum(measured[task.key] for task in of))
        for stage, of in rest.items()
    ]


def first_run(tasks: Mapping[str, Task]) -> dict[str, Task]:
    """The tasks of the first run of a training, and the first one of each stage that has none of that run."""
    run = next((key.partition("/")[2] for key, task in tasks.items() if task.stage in ("train", "inference")), None)
    found = {key: task for key, task in tasks.items() if run and f"{key}.".partition("/")[2].startswith(f"{run}.")}
    stages = {task.stage for task in found.values()}
    for key, task in tasks.items():
        if task.stage not in stages:
            stages.add(task.stage)
            found[key] = task
    return found
