"""The jobs of a config as they are run: one loads the model of a run, and those that share its work read the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from entropy_valley.checking.sizes import BYTES
from entropy_valley.experiment.asked import CANVASES, reads_model
from entropy_valley.experiment.chain import DIAGNOSTICS, FITTED, Chain
from entropy_valley.experiment.result import Result
from entropy_valley.forecast.work import Work

START = 4.0  # seconds until Python has imported torch and what loads a model, or COMET
DISK = 1e9  # bytes a second, of weights that are loaded
STAGES = ("pretrain", "train", "inference", "generate", "latency", "comet")  # that run a model
RUN = ("direction", "backbone", "seed")


@dataclass
class Task:
    """A job. ``key`` is its log's name, such as ``train/en-zh.llada-8b.seed1``, without the session of one that does
    the work of several. ``work``: of each GPU, see :class:`Work`; ``start``: seconds before it begins with that;
    ``needs``: the keys of the tasks that it waits for; ``results``: what it does the work of."""

    stage: str
    key: str
    work: float
    start: float = 0.0
    gpus: int = 0
    needs: set[str] = field(default_factory=set)
    results: list[Result] = field(default_factory=list)


class Tasks:
    """The tasks of a config's jobs."""

    def __init__(self, work: Work) -> None:
        self.work, self.experiment, self.chain = work, work.experiment, Chain(work.experiment)
        self.gpu = int(self.experiment.device == "cuda")

    def of(self, jobs: Iterable[Result], there: Collection[Result] = ()) -> dict[str, Task]:
        """The tasks of jobs by their key. Of work that they share with jobs that are ``there``, only the rest is left
        to do."""
        found: dict[str, Task] = {}
        asked = dict.fromkeys(jobs)
        for job in asked:
            for task in self._of(job):
                found.setdefault(task.key, task).results.append(job)
        of_there: dict[str, list[Result]] = {}
        for job in there:
            if key := self._shared(job):
                of_there.setdefault(key, []).append(job)
        for key, task in found.items():
            if task.stage in ("inference", "comet"):
                task.work = self._whole(task.stage, [*task.results, *of_there.get(key, [])])
                task.work -= self._whole(task.stage, of_there.get(key, []))
            task.needs = {need for job in task.results for need in self._needs(task, job, found)} - {key}
        return found

    def _of(self, job: Result) -> Iterator[Task]:
        """The task of a job, after the one that does its work together with that of others."""
        if shared := self._shared(job):
            yield Task(shared.partition("/")[0], shared, 0.0, self._start(job), self.gpu)
        own = not shared and job.rule in STAGES
        gpus = self.gpu * (self.experiment.training.processes if job.rule == "train" else own)
        work, start = (self.work.of(job), self._start(job)) if own else (1.0, 0.0)
        yield Task(job.rule, self._key(job), work / max(1, gpus), start, gpus)

    def _shared(self, job: Result) -> str:
        """The key of the task that does a job's work together with that of others; empty for any other job."""
        if job.rule == "score":
            return f"comet/{job.wildcards['direction']}.{job.wildcards['testset']}"
        if reads_model(self.chain, job):
            direction, backbone, seed = (job.wildcards[name] for name in RUN)
            return f"inference/{direction}.{backbone}.seed{seed}"
        return ""

    def _whole(self, stage: str, jobs: list[Result]) -> float:
        if stage == "comet":
            return self.work.of_scores(jobs)
        more = (job for job in jobs if job.rule in (*FITTED, *DIAGNOSTICS))
        return self.work.of_store(jobs) + sum(map(self.work.of, more))

    def _start(self, job: Result) -> float:
        """Seconds until a model is loaded."""
        if "backbone" not in job.wildcards:
            return START
        weights = self.work.size(job.wildcards["backbone"]).parameters * BYTES[self.experiment.decoding.precision]
        return START + weights / DISK

    def _needs(self, task: Task, job: Result, found: Collection[str]) -> Iterator[str]:
        """What a task waits for because of one of its results. The one that loads a run's model chooses the canvases
        that it decodes itself; those that share its work wait for it."""
        shared = self._shared(job)
        if shared in found:
            yield shared
        inside = (*CANVASES, *FITTED) if task.stage == "inference" else ()
        yield from (key for need in job.needs if need.rule not in inside and (key := self._key(need)) in found)

    def _key(self, job: Result) -> str:
        return job.log.removeprefix(f"{self.experiment.results}/logs/").removesuffix(".log")
