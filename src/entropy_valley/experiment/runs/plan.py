"""What the jobs of a dry run will take: hours, GPU-hours, disk and downloads, before any of them runs.

The work of a job is tokens × passes × operations of the weights, see :mod:`entropy_valley.experiment.runs.work`. How
much work a second does is measured where jobs have finished, else published. Which jobs run, Snakemake decides.
"""

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from entropy_valley import machine
from entropy_valley.errors import listed
from entropy_valley.experiment.config import params
from entropy_valley.experiment.runs import duration
from entropy_valley.experiment.runs.audit import Audit
from entropy_valley.experiment.runs.downloads import downloads, downloads_line, missing
from entropy_valley.experiment.runs.jobs import Job, finished
from entropy_valley.experiment.runs.work import GPU, Work, kind_of
from entropy_valley.experiment.stats.job_costs import gpus
from entropy_valley.texts import counted
from entropy_valley.training.settings import SAVED

# What else is published of H20, in operations a second: a training takes 6 GPU-hours (README of the authors' code), and
# EV a sentence in 1.7 s (the paper's decoder, En→Zh, T = 32). A test computes them again. COMET computes in float32, in
# which an H20 has 44 TFLOP/s, and 148 in bfloat16.
GPU_TRAINING, GPU_DECODER, GPU_COMET = 5.3e13, 9.1e12, GPU * 44 / 148
# Operations a second of the demo's small models on two cores of a CPU, where no job of a kind has finished.
CPU = {"pretrain": 6.2e10, "train": 1.0e10, "translate": 1.0e11, "score": 1.1e10}
# Seconds of a job whose work is not counted; on a GPU's machine there may be tens of millions of pairs, and large
# downloads, and models are of 8B.
SHORT, LONG = 1.5, dict.fromkeys(("corpus", "fetch_backbone", "fetch_comet", "fetch_dataset"), 600.0)
LONG |= {"latency": 130, "diagnose": 320, "generate": 270}
START, LOADED = 5.0, 15.0  # seconds until a model is loaded, a small one or one of 8B on a GPU
CELL = 1400  # bytes on the disk of a sentence of a cell, measured in the demo
FILES = 9  # of a job: results, records, logs and Snakemake's notes, measured in the demo
PLURALS = {"testset": "test sets", "steps": "step budgets"}  # of wildcards
GPUS, WIDTH, WHERE, REASONS = 8, 150, 60, 4  # of a node; columns of a line, and of wildcards; most of a rule


# --- What jobs take.


class Plan:
    """What the jobs ``left`` will take, in the order in which they run; of sets only the cells that are ``new``."""

    def __init__(self, audit: Audit, left: Sequence[Job]) -> None:
        self.experiment = experiment = audit.experiment
        self.left, self.new = left, {job: audit.new_cells(job) for job in left if job.cells}
        self.gpus, self._model = gpus(experiment.device, experiment.training.processes), Work(experiment)
        self.done = finished(experiment)
        work = self._model.of([*self.done, *left], self.new)
        self._work = {job: work[job] / max(1, self.held(job)) for job in work}
        self.finished: Counter[str] = Counter()  # jobs by kind
        self.speeds = self._measured()
        self.seconds = {job: self._start(job) + self._work[job] / self.speed(job) for job in self.left}

    def held(self, job: Job) -> int:
        """The GPUs of a job."""
        return self.gpus.get(job.rule, 0)

    @property
    def allocated(self) -> list[Job]:
        """The jobs that a cluster runs: their rules have a benchmark."""
        return [job for job in self.left if job.benchmark]

    def gpu_hours(self, jobs: Iterable[Job]) -> float:
        """GPU-hours that jobs use."""
        return sum(self.seconds[job] * self.held(job) for job in jobs) / 3600

    def published(self, training: float = GPU, decoder: float = GPU) -> float:
        """GPU-hours of all jobs on H20 by published times alone, whatever was measured here."""
        speeds = {job: self._assumed(kind_of(job), training, decoder) for job in self.left}
        return sum((self._start(job) + self._work[job] / speeds[job]) * self.held(job) for job in self.left) / 3600

    def speed(self, job: Job) -> float:
        """Work a second of a job, measured where one of its kind has finished."""
        kind = kind_of(job)
        return self.speeds.get(kind) or self._assumed(kind)

    def _assumed(self, kind: str, training: float = GPU, decoder: float = GPU) -> float:
        """Work a second of a kind of jobs of which nothing was measured."""
        if kind not in CPU:
            return 1 / (LONG.get(kind, SHORT) if self.gpus else SHORT)
        if not self.gpus:
            return CPU[kind]
        return {"train": training, "score": GPU_COMET}.get(kind, decoder)

    def _measured(self) -> dict[str, float]:
        """Work a second of the kinds of which jobs have finished."""
        work: defaultdict[str, float] = defaultdict(float)
        seconds: defaultdict[str, float] = defaultdict(float)
        for job, took in self.done.items():
            if self._work[job]:
                kind = kind_of(job)
                self.finished[kind] += 1
                work[kind] += self._work[job]
                seconds[kind] += max(took - self._start(job), took / 2, 1e-9)
        return {kind: work[kind] / seconds[kind] for kind in work}

    def _start(self, job: Job) -> float:
        """Seconds until a model is loaded."""
        if kind_of(job) not in CPU:
            return 0.0
        return LOADED if self.held(job) else START

    @property
    def disk(self) -> dict[str, float]:
        """Bytes that the jobs leave on the disk, by what they are."""
        sizes: defaultdict[str, float] = defaultdict(float)
        config = self.experiment
        sizes["downloads"] = sum(one.bytes or 0 for one in downloads(config, self.left))
        for job in self.left:
            if job.rule == "train":
                adapter = self._model.size(job.wildcards["backbone"]).adapter(config.training.lora.rank)
                sizes["adapters"] += 4 * adapter
                sizes["checkpoints of a training"] = max(sizes["checkpoints of a training"], 2 * SAVED * adapter)
            elif job.rule in ("translate", "merge"):
                for cell in self.new.get(job, job.cells):
                    sizes["cells"] += CELL * params.sentences(config, cell.run.direction, cell.testset)
        return {what: size for what, size in sizes.items() if size}


# --- In print.


def report(plan: Plan, configs: Iterable[str], why: Mapping[Job, str]) -> Iterator[str]:
    """What a dry run prints, in lines; ``why`` has the reason of each job."""
    yield f"Config:    {', '.join(configs)}"
    yield f"Models:    {', '.join(plan.experiment.matrix.backbones)}; on {plan.experiment.device}"
    yield f"Results:   {plan.experiment.results}; {counted(len(plan.done), 'job')} done, as benchmarks say"
    yield from ("", table(plan, why), "")
    yield from totals(plan)


def table(plan: Plan, why: Mapping[Job, str]) -> str:
    """A row for each rule: jobs, cells, time, GPU-hours, and the reasons of its jobs; then a row for all."""

    def row(name: str, cells: int, jobs: Sequence[Job], *last: str) -> list[str]:
        spent = [hours(plan.gpu_hours(jobs))] if plan.gpus else []
        return [name, str(len(jobs)), str(cells or ""), duration(sum(plan.seconds[job] for job in jobs)), *spent, *last]

    rows = [["rule", "jobs", "cells", "time of all", *["GPU-hours"] * bool(plan.gpus), "for", "why"]]
    for rule in reversed(dict.fromkeys(job.rule for job in reversed(plan.left))):  # by the last job of each
        jobs = [job for job in plan.left if job.rule == rule]
        # Those of a shard are counted with its set.
        cells = sum(len(plan.new.get(job, job.cells)) for job in jobs if rule != "shard")
        rows.append(row(rule, cells, jobs, where([job.wildcards for job in jobs]), reasons(why[job] for job in jobs)))
    return aligned([*rows, row("all", 0, plan.left, "", "")])


def totals(plan: Plan) -> list[str]:
    """All jobs in some lines: the longest, what a cluster gives, where times are from, downloads, disk, assumptions."""
    on_gpu = [job for job in plan.left if plan.held(job)]
    longest = max(plan.left, key=plan.seconds.__getitem__)
    disk = plan.disk
    sizes = ", ".join(f"{name} {machine.amount(size)}" for name, size in disk.items())
    stored = f", {machine.amount(sum(disk.values()))} ({sizes})" * bool(sizes)
    unread = missing(plan.experiment, plan.left)
    lines = [
        f"Longest:   {longest.name} ({duration(plan.seconds[longest])})",
        *(on_a_cluster(plan, on_gpu) if on_gpu else ()),
        f"Times:     {speeds(plan)}",
        f"Downloads: {downloads_line(plan.experiment, plan.left)}",
        f"Disk:      about {FILES * len(plan.left):,} files{stored}",
        *([f"Not there: {listed(unread, 5)}. Jobs that read them will fail"] if unread else ()),
    ]
    return [textwrap.fill(line, WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False) for line in lines]


def on_a_cluster(plan: Plan, on_gpu: Sequence[Job]) -> Iterator[str]:
    """What a cluster gives for the jobs; where times are assumed, also what is published of GPU-hours."""
    used = plan.gpu_hours(on_gpu)
    least = max(3600 * used / GPUS, *(plan.seconds[job] for job in on_gpu))
    yield (
        f"Cluster:   {counted(len(plan.allocated), 'job')}, {len(on_gpu)} with GPUs; "
        f"{hours(used)} GPU-hours; on {GPUS} GPUs at least {duration(least)}"
    )
    published = {"by the paper's total of 420": plan.published()}
    if any(job.rule == "train" for job in on_gpu):
        published["by its authors' 6 for a training"] = plan.published(training=GPU_TRAINING)
    published["by its 1.7 s for a sentence"] = plan.published(decoder=GPU_DECODER)
    if any(kind_of(job) not in plan.finished for job in on_gpu):
        low, high = min(published.values()), max(published.values())
        sources = ", ".join(f"{hours(number)} {source}" for source, number in published.items())
        yield f"Range:     {hours(low)} to {hours(high)} GPU-hours on H20: {sources}"


def speeds(plan: Plan) -> str:
    """Where the times of rules are from."""
    counts = {job.rule: plan.finished[kind_of(job)] for job in plan.left}
    measured = ", ".join(f"{rule} ({count})" for rule, count in counts.items() if count)
    usual = "from the paper's 420 GPU-hours on H20, or as usual" if plan.gpus else "as on two quiet cores"
    return f"of {measured} from finished jobs here; of the others {usual}" if measured else f"of all {usual}"


def reasons(texts: Iterable[str]) -> str:
    """Why jobs run: each reason once, with how many jobs have it where reasons differ."""
    counts = Counter(texts)
    shown = [f"{text} ({count})" if len(counts) > 1 else text for text, count in counts.most_common(REASONS)]
    return "; ".join([*shown, *[f"… ({len(counts)} reasons)"] * (len(counts) > REASONS)])


def where(wildcards: Sequence[Mapping[str, str]]) -> str:
    """The values of the wildcards of jobs; of many values their number."""
    texts, counts = [], []
    for name in wildcards[0]:
        values = list(dict.fromkeys(one[name] for one in wildcards))
        text = " ".join(values)
        if name in ("seed", "steps") and text[:1].isdigit():  # what a bare number is
            text = f"{'T' if name == 'steps' else name} {text}"
        texts.append(text)
        counts.append(text if len(values) == 1 else f"{len(values)} {PLURALS.get(name, f'{name}s')}")
    whole = " · ".join(texts)
    return whole if len(whole) <= WHERE else " · ".join(counts)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns; numbers stand at the right, and the last column is wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths) + 2 * len(widths)
    joint = "\n" + " " * indent
    lines = []
    for *first, last in rows:
        sides = [text.rjust if 0 < place < len(first) - 1 else text.ljust for place, text in enumerate(first)]
        begin = "".join(f"{side(width)}  " for side, width in zip(sides, widths, strict=True))
        wrapped = textwrap.wrap(last, max(30, WIDTH - indent), break_on_hyphens=False)
        lines.append(f"{begin}{joint.join(wrapped)}".rstrip())
    return "\n".join(lines)


def hours(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}" if number else "–"
