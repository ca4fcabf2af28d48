"""What is left to run of a config and what it will take: hours, GPU-hours, disk and downloads, before any of it runs.

The jobs are those of the inventory, their work is counted (:mod:`entropy_valley.runs.work`), and how much of it a
second takes is measured from finished jobs, where there are any. It is an estimate: which job runs, Snakemake decides.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from entropy_valley.analysis.job_costs import finished_seconds, gpus
from entropy_valley.checking import needs, subject
from entropy_valley.checking.sizes import BYTES
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.paths import backbone_folder, comet_folder
from entropy_valley.results import system_of
from entropy_valley.runs import downloads
from entropy_valley.runs.audit import DONE, Audit, concerns
from entropy_valley.runs.inventory import Job
from entropy_valley.runs.work import Work

START = 4.0  # seconds until Python has imported torch and what loads a model, or COMET
DISK = 1e9  # bytes a second, of weights that are loaded
PAPERS = 420.0  # GPU-hours on H20 of the paper's "full experimental grid"
# Operations a second, where no job of a kind has finished. On a GPU, that with which the whole matrix of config.yaml
# takes the paper's hours; a test computes it again. On a CPU, those of the demo on two cores: small models are slow.
GPU = 4.0e13
CPU = {"pretrain": 3.6e10, "train": 1.0e10, "translate": 4.1e10, "diagnose": 4.1e10}
CPU |= {"generate": 3.4e9, "latency": 4.6e9, "score": 2.9e10}
# Seconds of a job that runs no model, from the demo; on a GPU's machine some are larger: tens of millions of pairs.
SHORT, USUAL = 0.6, {"corpus": 2.0, "table": 2.5, "figure": 4.0, "comparison": 4.0, "train_comet": 42.0}
LONG = USUAL | {"corpus": 3 * 3600.0, "fetch_backbone": 600.0, "fetch_comet": 120.0, "fetch_dataset": 300.0}
GPUS = 8  # of a node, for which the time is also said
SHARD = re.compile(r"^shard/(.+)\.\d+of\d+$")
WIDTH = 150  # columns of a line in print
WHERE = 56  # most columns for the wildcards of a rule's jobs
PRIOR = f"""Rules whose speed is the paper's have no finished job here. By construction, the whole matrix of config.yaml
then takes the paper's {PAPERS:.0f} GPU-hours on H20. One finished job of a rule replaces this."""


def left(audit: Audit, targets: Collection[str] | None = None) -> tuple[list[Job], list[Job]]:
    """The jobs that have to run so that files are made (None: all of the config), and those that are done.

    A job has to run if it is not done, or one that it reads has to run. A missing file that only finished jobs read is
    not missed.
    """
    inventory, runs = audit.inventory, set()
    jobs = inventory.all() if targets is None else inventory.behind(targets)
    reads = {job: [read for read in map(inventory.at, job.inputs) if read] for job in jobs}
    ends = {*map(inventory.at, targets)} if targets else {job for job in jobs if job.rule == "score"}
    between = {read for job in jobs for read in reads[job]} - ends

    def require(job: Job) -> None:
        if job not in runs:
            runs.add(job)
            for read in reads[job]:
                if audit.job(read).state != DONE:
                    require(read)

    for job in jobs:
        state = audit.job(job)
        due = state.state != DONE and (state.there or job not in between)
        if due or any(read in runs for read in reads[job]):
            require(job)
    return [job for job in jobs if job in runs], [job for job in jobs if job not in runs and audit.job(job).there]


def computed(audit: Audit, job: Job) -> Job:
    """Of a set that has to run, what the store has from before: the job with the cells that no change concerns."""
    state, cells = audit.job(job), job.cells
    if job.rule == "score" and (translated := audit.inventory.at(job.inputs[0])):
        cells = computed(audit, translated).cells
    keys = [reason.key for reason in state.reasons if reason.key != "made_from.translations"]
    kept = [cell for cell in cells if system_of(cell) in (state.cells or ())]
    unchanged = [cell for cell in kept if all(key and not concerns(audit.experiment, key, cell) for key in keys)]
    return dataclasses.replace(job, cells=tuple(unchanged))


@dataclass(frozen=True)
class Rate:
    """Of a kind of jobs: ``start`` is the share of the usual seconds before the work, ``speed`` the work of a second,
    and ``jobs`` how many finished ones say so."""

    speed: float
    start: float = 1.0
    jobs: int = 0


@dataclass(frozen=True)
class Estimate:
    """Seconds of a job, and the GPUs that it holds."""

    seconds: float
    gpus: int = 0

    @property
    def gpu_seconds(self) -> float:
        return self.seconds * self.gpus


class Plan:
    """What the jobs ``left`` will take, in the order in which they run; ``done`` are those whose results exist, and
    ``before`` parts of jobs that need not be computed again, see :func:`computed`."""

    def __init__(
        self, experiment: Experiment, left: Sequence[Job], done: Sequence[Job] = (), before: Sequence[Job] = ()
    ) -> None:
        self.experiment, self.left, self.done = experiment, list(left), list(done)
        self._gpus = gpus(experiment.device, experiment.training.processes)
        self._model = Work(experiment)
        self._work = self._model.of([*done, *(job for job in before if job.cells), *left])
        self.rates = self._fitted(done, measured(experiment.results))
        self.estimates = {job: Estimate(self._seconds(job), self._gpus.get(job.rule, 0)) for job in self.left}

    @classmethod
    def of(cls, audit: Audit, targets: Collection[str] | None = None) -> Plan:
        """Of all that is left to run so that files are made; None: all of the config."""
        return cls.of_jobs(audit, *left(audit, targets))

    @classmethod
    def of_jobs(cls, audit: Audit, left: Sequence[Job], done: Sequence[Job]) -> Plan:
        """Of jobs that somebody else has chosen."""
        return cls(audit.experiment, left, done, [computed(audit, job) for job in left if job.cells])

    @property
    def seconds(self) -> float:
        """Of all jobs, as if one ran after the other."""
        return sum(one.seconds for one in self.estimates.values())

    @property
    def gpu_seconds(self) -> float:
        return sum(one.gpu_seconds for one in self.estimates.values())

    @functools.cached_property
    def longest(self) -> Job:
        """The job that takes most time."""
        return max(self.left, key=lambda job: self.estimates[job].seconds)

    def rate(self, kind: str) -> Rate:
        """That of finished jobs of a kind, else the usual one."""
        if kind in self.rates:
            return self.rates[kind]
        if kind in CPU:
            return Rate(GPU if self._gpus else CPU[kind])
        return Rate(1 / (LONG if self._gpus else USUAL).get(kind, SHORT))

    @property
    def assumed(self) -> dict[str, str]:
        """Checkpoints of jobs whose size nothing says, each with the model that it counts as."""
        used = dict.fromkeys(job.wildcards["backbone"] for job in self.left if "backbone" in job.wildcards)
        unknown = [name for name in used if subject.size(self.experiment, name) is None]
        models = {backbone_folder(self.experiment, name): "LLaDA-8B" for name in unknown}
        given = comet_folder(self.experiment)
        scored = any(job.rule == "score" for job in self.left)
        own = given == self.experiment.scoring.comet.checkpoint  # neither trained here nor of the hub
        return models | ({given: "COMET-22"} if scored and own and not Path(given).exists() else {})

    @property
    def disk(self) -> Counter[str]:
        """Bytes that the jobs leave on the disk, by what they are."""
        sizes: Counter[str] = Counter()
        for _, what, size in needs.left(self.experiment, self.left):
            sizes[what] += size
        return +sizes

    def _fitted(self, done: Iterable[Job], seconds: Mapping[str, float]) -> dict[str, Rate]:
        """The usual start, or half of the shortest job where that is less; the rest of the time is for the work."""
        groups: dict[str, list[tuple[float, float, float]]] = {}
        for job in done:
            if job.name in seconds and self._share(job) > 0:
                groups.setdefault(_kind(job), []).append((self._share(job), self._start(job), seconds[job.name]))
        rates = {}
        for kind, group in groups.items():
            part = min(1.0, *(took / 2 / start if start else 1.0 for _, start, took in group))
            rest = sum(took - part * start for _, start, took in group)
            rates[kind] = Rate(sum(work for work, _, _ in group) / max(rest, 1e-9), part, len(group))
        return rates

    def _seconds(self, job: Job) -> float:
        rate = self.rate(_kind(job))
        return rate.start * self._start(job) + self._share(job) / rate.speed

    def _share(self, job: Job) -> float:
        """The work of each GPU of a job."""
        return self._work[job] / max(1, self._gpus.get(job.rule, 0))

    def _start(self, job: Job) -> float:
        """Seconds until a model is loaded, once for each shard."""
        if _kind(job) not in CPU:
            return 0.0
        if job.rule == "score":
            return START
        weights = self._model.size(job.wildcards["backbone"]).parameters * BYTES[self.experiment.decoding.precision]
        return (START + weights / DISK) * (self.experiment.decoding.shards if job.rule == "translate" else 1)


def measured(results: str | Path) -> dict[str, float]:
    """Seconds of each finished job by its name; those of the shards of a translation together."""
    found: Counter[str] = Counter()
    for name, seconds in finished_seconds(Path(results, "benchmarks")).items():
        found[SHARD.sub(r"translate/\1", name)] += seconds
    return dict(found)


def _kind(job: Job) -> str:
    """Jobs of a kind do as much work a second: autoregressive translations do not go by the other ones."""
    return "generate" if job.rule == "translate" and not job.cells[0].order else job.rule


# In print.


def table(plan: Plan, why: Mapping[Job, str] | None = None) -> str:
    """A row for each rule: jobs, cells, time, and where the speed is from; with ``why`` instead the reasons of jobs."""
    on_gpu = plan.experiment.device == "cuda"
    last = "speed from" if why is None else "why"
    header = ["rule", "jobs", "cells", "time of all", *["GPU-hours"] * on_gpu, "of", last]
    groups: dict[str, list[Job]] = {}
    for job in plan.left:
        groups.setdefault(job.rule, []).append(job)
    rows = []
    for rule, jobs in groups.items():
        costs = [plan.estimates[job] for job in jobs]
        cells, gpu = sum(len(job.cells) for job in jobs), sum(one.gpu_seconds for one in costs)
        times = [duration(sum(one.seconds for one in costs)), *[hours(gpu)] * on_gpu]
        last = _origin(plan, jobs, gpu) if why is None else reasons([why[job] for job in jobs])
        rows.append([rule, str(len(jobs)), str(cells or ""), *times, where([job.wildcards for job in jobs]), last])
    return aligned([header, *rows])


def totals(plan: Plan) -> list[str]:
    """All jobs in some lines: time, the longest one, downloads, disk, and what is assumed."""
    if not plan.left:
        return ["Nothing is left to run."]
    many = f" (on {GPUS} GPUs {duration(plan.gpu_seconds / GPUS)} at best)"
    gpu = f", {hours(plan.gpu_seconds)} GPU-hours{many}" if plan.gpu_seconds else ""
    longest, disk = plan.longest, plan.disk
    parts = ", ".join(f"{name} {downloads.gigabytes(size)}" for name, size in disk.items())
    lines = [
        f"All:       {counted(len(plan.left), 'job')}, about {duration(plan.seconds)} one after the other{gpu}; "
        f"the longest: {longest.name} ({duration(plan.estimates[longest].seconds)})",
        f"Downloads: {downloads.summary(plan.experiment, plan.left)}",
        f"Disk:      about {downloads.gigabytes(disk.total())}" + f" ({parts})" * bool(parts),
        *(f"{path}: does not exist; counts as large as {model} until it does" for path, model in plan.assumed.items()),
    ]
    return [textwrap.fill(line, WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False) for line in lines]


def heading(plan: Plan) -> list[str]:
    """Which config it is."""
    matrix = plan.experiment.matrix
    trained = dict.fromkeys(plan.experiment.directions[name].train for name in matrix.directions)
    return [
        f"Models:    {', '.join(matrix.backbones)}; pairs of {', '.join(trained)}; on {plan.experiment.device}",
        f"Results:   {plan.experiment.results}; {counted(len(plan.done), 'job')} done",
    ]


def report(plan: Plan, configs: Iterable[str | Path]) -> str:
    """What `entropy-valley plan` prints."""
    lines = [f"Config:    {', '.join(map(str, configs))}", *heading(plan)]
    prior = any(one.gpus and _kind(job) not in plan.rates for job, one in plan.estimates.items())
    rows = ["", table(plan), ""] if plan.left else []
    return "\n".join([*lines, *rows, *totals(plan), *["", PRIOR] * prior])


def _origin(plan: Plan, jobs: Sequence[Job], gpu: float) -> str:
    finished = sum(plan.rates[kind].jobs for kind in dict.fromkeys(map(_kind, jobs)) if kind in plan.rates)
    return counted(finished, "finished job") if finished else "the paper" if gpu else "usual"


def reasons(texts: Iterable[str], most: int = 4) -> str:
    """Why jobs run: each reason once, with how many jobs have it where reasons differ."""
    counts = Counter(texts)
    shown = [f"{text} ({count})" if len(counts) > 1 else text for text, count in counts.most_common(most)]
    return "; ".join([*shown, *[f"… ({len(counts)} reasons)"] * (len(counts) > most)])


def where(wildcards: Sequence[Mapping[str, str]]) -> str:
    """The values of the wildcards of jobs; of many values their number."""
    columns = {name: list(dict.fromkeys(one[name] for one in wildcards)) for name in wildcards[0]}
    for room in (WHERE, 40, 24, 0):  # for the values of one wildcard
        text = " · ".join(_values(name, values, room) for name, values in columns.items())
        if len(text) <= WHERE:
            break
    return text


def _values(name: str, values: list[str], room: int) -> str:
    label = {"seed": "seeds " if len(values) > 1 else "seed ", "steps": "T "}.get(name, "")
    text = f"{label}{' '.join(values)}"
    plural = {"testset": "test sets", "steps": "step budgets"}.get(name, f"{name}s")
    return text if len(text) <= room or len(values) == 1 else f"{len(values)} {plural}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns; numbers stand at the right, and the last column is wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = max(30, WIDTH - sum(widths[:-1]) - 2 * (len(widths) - 1))
    lines = []
    for row in rows:
        texts = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) or [""]
        first = [
            text.rjust(width) if 0 < place < len(row) - 2 else text.ljust(width)
            for place, (text, width) in enumerate(zip(row[:-1], widths[:-1], strict=True))
        ]
        lines.append("  ".join([*first, texts[0]]).rstrip())
        lines += [" " * (sum(widths[:-1]) + 2 * (len(widths) - 1)) + text for text in texts[1:]]
    return "\n".join(lines)


def hours(seconds: float) -> str:
    """Hours with two digits."""
    return f"{seconds / 3600:,.0f}" if seconds >= 36_000 else f"{seconds / 3600:.2g}" if seconds else "–"


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"
    return f"{seconds:.0f} s"


def counted(count: int, noun: str) -> str:
    """``3 jobs``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
