"""What the jobs of a dry run will take: hours, GPU-hours, disk and downloads, before any of them runs.

The work of a job is tokens × passes × operations of the weights, see :mod:`entropy_valley.runs.work`. How much work a
second does is measured from finished jobs, where there are any. Which jobs run, Snakemake decides.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import machine
from entropy_valley.checking import subject
from entropy_valley.checking.subject import BYTES, RELEASED
from entropy_valley.config import Experiment, params, paths
from entropy_valley.config.matrix import Run
from entropy_valley.config.schema import checkpoints
from entropy_valley.data.sources.huggingface import HuggingFace
from entropy_valley.results import TRANSLATIONS, system_of
from entropy_valley.runs import limits
from entropy_valley.runs.audit import Audit, concerns
from entropy_valley.runs.inventory import Job
from entropy_valley.runs.work import GPU, Work, kind_of
from entropy_valley.scoring import comet_checkpoint
from entropy_valley.stats.job_costs import finished_seconds, gpus
from entropy_valley.training.settings import SAVED

PAPERS = 420.0  # GPU-hours on H20 of the paper's "full experimental grid"
# Operations a second of the demo's small models on two cores of a CPU, where no job of a kind has finished.
CPU = {"pretrain": 6.2e10, "train": 1.0e10, "translate": 1.0e11, "diagnose": 8.0e10}
CPU |= {"generate": 5.0e9, "latency": 4.6e9, "score": 1.1e10}
# Seconds of a job that runs no model, from the demo; on a GPU's machine some are larger: tens of millions of pairs.
SHORT, USUAL = 0.6, {"corpus": 1.8, "table": 1.5, "figure": 2.4, "comparison": 1.5, "page": 1.5, "train_comet": 38.0}
USUAL |= {"length_ratios": 1.4, "document": 1.0, "pdf": 10.0}
LONG = USUAL | {"corpus": 3 * 3600.0, "fetch_backbone": 600.0, "fetch_comet": 120.0, "fetch_dataset": 300.0}
START, LOADED = 5.0, 1e9  # seconds until torch and transformers are imported; bytes a second of weights that are loaded
PAIR, CELL = 400, 1400  # bytes on the disk of a training pair, and of a sentence of a cell, measured in the demo
ROW = 140  # bytes of a pair in the Parquet files of WMT19: 3.6 GB for 26.0 million of zh-en
SMALL = 1e9  # bytes; less than this in all is downloaded without a question
GPUS, WIDTH, WHERE = 8, 150, 56  # of a node; columns of a line, and of wildcards

# --- What jobs take.


def with_new_cells(audit: Audit, job: Job) -> Job:
    """A set that has to run, with only the cells that its header does not list or that a change concerns: all others
    are in the store. A shard has the new cells of its set."""
    if job.rule == "shard":
        folder = job.outputs[0].rpartition("/shards/")[0]
        return dataclasses.replace(
            job, cells=with_new_cells(audit, audit.inventory.at(f"{folder}/{TRANSLATIONS}")).cells
        )
    state, read = audit.job(job), job
    if job.rule == "score" and (translated := audit.inventory.at(job.inputs[0])):
        read = with_new_cells(audit, translated)
    keys = [reason.key for reason in state.reasons if not reason.log and reason.key != "made_from.translations"]
    new = {cell for cell in read.cells if read is not job}
    for cell in job.cells:
        changed = any(not key or concerns(audit.experiment, key, cell) for key in keys)
        if changed or system_of(cell) not in (state.cells or ()):
            new.add(cell)
    return dataclasses.replace(job, cells=tuple(cell for cell in job.cells if cell in new))


class Plan:
    """What the jobs ``left`` will take, in the order in which they run; ``done`` are those whose results exist.
    ``new`` has the parts of sets that are computed, see :func:`with_new_cells`."""

    def __init__(
        self, experiment: Experiment, left: Sequence[Job], done: Sequence[Job] = (), new: Mapping[Job, Job] = {}
    ) -> None:
        self.experiment, self.left, self.done = experiment, list(left), list(done)
        self.gpus, self._model = gpus(experiment.device, experiment.training.processes), Work(experiment)
        parts = {job: new.get(job, job) for job in [*done, *left]}
        work = self._model.of(parts.values())
        self._work = {job: work[part] / max(1, self.held(job)) for job, part in parts.items()}
        self.speeds, self.slower = {}, 1.0  # nothing is measured
        self.speeds, self.slower = self._measured()
        self.seconds = {job: self._seconds(job) for job in self.left}
        self.gpu_seconds = sum(took * self.held(job) for job, took in self.seconds.items())

    @classmethod
    def of(cls, audit: Audit, left: Sequence[Job], done: Sequence[Job]) -> Plan:
        """Of jobs that Snakemake has chosen; of sets only what is new."""
        return cls(audit.experiment, left, done, {job: with_new_cells(audit, job) for job in left if job.cells})

    def held(self, job: Job) -> int:
        """The GPUs of a job."""
        return self.gpus.get(job.rule, 0) if kind_of(job) != "merge" else 0

    def minutes(self, job: Job) -> int:
        """The time limit that a job requests, for all its cells, whether they are in the store or not."""
        if kind_of(job) not in CPU:
            return limits.USUAL
        work = self._model.of([job])[job] / max(1, self.held(job))
        minutes = limits.minutes(self.experiment, self._start(job) + work / self.speed(kind_of(job))[0])
        return minutes if self.held(job) else max(limits.USUAL, minutes)

    def speed(self, kind: str) -> tuple[float, int]:
        """Work a second of a kind of jobs, and how many finished ones say so."""
        if kind in self.speeds:
            return self.speeds[kind]
        if kind in CPU:
            return GPU if self.gpus else CPU[kind], 0
        return 1 / (LONG if self.gpus else USUAL).get(kind, SHORT), 0

    def _seconds(self, job: Job) -> float:
        """Seconds of a job; of a kind of which none has finished, as much slower than usual as the others were."""
        speed, finished = self.speed(kind_of(job))
        return (self._start(job) + self._work[job] / speed) * (1 if finished else self.slower)

    def _measured(self) -> tuple[dict[str, tuple[float, int]], float]:
        """The speeds of kinds of which jobs have finished, and how many times as long as usual these jobs took; with
        GPUs 1, which say nothing of the jobs on CPUs."""
        times, groups = finished_seconds(Path(self.experiment.results, "benchmarks")), {}
        done = [job for job in self.done if job.name in times and self._work[job]]
        for job in done:
            took = times[job.name]
            groups.setdefault(kind_of(job), []).append((self._work[job], max(took - self._start(job), took / 2)))
        speeds = {kind: (sum(work for work, _ in rows) / max(sum(took for _, took in rows), 1e-9), len(rows))
                  for kind, rows in groups.items()}  # fmt: skip
        usual = sum(map(self._seconds, done))
        return speeds, sum(times[job.name] for job in done) / usual if usual and not self.gpus else 1.0

    def _start(self, job: Job) -> float:
        """Seconds until a model is loaded."""
        if kind_of(job) not in CPU or job.rule == "score":
            return START * (job.rule == "score")
        weights = self._model.size(job.wildcards["backbone"]).parameters * BYTES[self.experiment.decoding.precision]
        return START + weights / LOADED

    @property
    def assumed(self) -> dict[str, str]:
        """Backbones whose size nothing says, each with the model that it counts as."""
        used = dict.fromkeys(job.wildcards["backbone"] for job in self.left if "backbone" in job.wildcards)
        return {name: "LLaDA-8B" for name in used if subject.size(self.experiment, name) is None}

    @property
    def disk(self) -> Counter[str]:
        """Bytes that the jobs leave on the disk, by what they are."""
        sizes, config = Counter(), self.experiment
        kept = (one for one in downloads(config, self.left) if one.kept)
        sizes["downloads"] = sum(one.bytes or 0 for one in kept)
        for job in self.left:
            parameters = self._model.size(job.wildcards["backbone"]) if "backbone" in job.wildcards else None
            if job.rule == "pretrain":
                sizes["pre-trained models"] += 4 * parameters.parameters
            elif job.rule == "train":
                adapter = parameters.adapter(config.training.lora.rank)
                sizes["adapters"] += 4 * adapter
                sizes["checkpoints of a training"] = max(sizes["checkpoints of a training"], 2 * SAVED * adapter)
            elif job.rule == "corpus":
                sizes["training pairs"] += PAIR * self._model.text(job.wildcards["direction"], "train").sentences
            elif job.rule == "translate":
                rows = (params.sentences(config, cell.run.direction, cell.testset) for cell in job.cells)
                sizes["cells"] += CELL * sum(rows)
        return +sizes


# --- What they would download that does not exist yet.


@dataclass(frozen=True)
class Download:
    """Something on the hub; ``bytes`` is None if its size is unknown. ``kept``: it stays on the disk."""

    name: str
    bytes: float | None
    kept: bool = True

    def __str__(self) -> str:
        size = "size unknown" if self.bytes is None else machine.amount(self.bytes)
        return f"{self.name} ({size}{'' if self.kept else ', not kept'})"


def downloads(experiment: Experiment, jobs: Iterable[Job]) -> list[Download]:
    """What jobs would download, each once."""
    return list(dict.fromkeys(one for job in jobs for one in _downloads(experiment, job.rule, job.wildcards)))


def _downloads(experiment: Experiment, rule: str, wildcards: Mapping[str, str]) -> Iterator[Download]:
    match rule:
        case "fetch_backbone":
            name = wildcards["backbone"]
            hub = experiment.backbones[name].hub
            if hub and not subject.is_downloaded(experiment, name):
                size = subject.size(experiment, name)
                yield Download(hub.repository, RELEASED * size.parameters if size else None)
        case "fetch_comet":
            metric = paths.downloaded_comets(experiment)[wildcards["checkpoint"]]
            if not Path(paths.comet_folder(experiment, metric)).exists():
                repository = checkpoints(experiment.scoring)[metric].checkpoint
                yield Download(repository, comet_checkpoint.size(wildcards["checkpoint"]) or None)
        case "fetch_dataset":
            name = wildcards["dataset"]
            if not Path(paths.dataset_folder(experiment, name)).exists():
                yield Download(paths.downloaded_datasets(experiment)[name].dataset, None)
        case "corpus" | "testset":
            name = wildcards.get("testset") or experiment.directions[wildcards["direction"]].train
            source = experiment.sources[name]
            if isinstance(source, HuggingFace) and not source.folder:
                size = source.rows * ROW if source.rows else None
                yield Download(f"{source.dataset} {source.subset} {source.split}", size, kept=False)
        case "adopt_adapter":
            run = Run.named(wildcards["direction"], wildcards["backbone"], wildcards["seed"])
            given = paths.released_adapter(experiment, run)
            if given.repository and not given.folder:
                size = subject.size(experiment, run.backbone)
                yield Download(given.repository, 4 * size.adapter(experiment.training.lora.rank) if size else None)


def downloads_line(experiment: Experiment, jobs: Iterable[Job]) -> str:
    """All downloads in a line, and how to agree to them if they are large and the config does not."""
    items = downloads(experiment, jobs)
    if not items:
        return "none"
    sizes = [item.bytes for item in items]
    unknown = f" and {sizes.count(None)} of unknown size" * (None in sizes)
    text = f"{machine.amount(sum(filter(None, sizes)))}{unknown}: {', '.join(map(str, items))}"
    large = None in sizes or sum(filter(None, sizes)) >= SMALL
    ask = ". To agree, add at the end of the command: --config confirm=yes"
    return text + ask * (large and not experiment.confirm)


# --- In print.


def report(plan: Plan, configs: Iterable[str], why: Mapping[Job, str]) -> Iterator[str]:
    """What a dry run prints, in lines; ``why`` has the reason of each job."""
    matrix = plan.experiment.matrix
    trained = dict.fromkeys(plan.experiment.directions[name].train for name in matrix.directions)
    yield f"Config:    {', '.join(configs)}"
    yield f"Models:    {', '.join(matrix.backbones)}; pairs of {', '.join(trained)}; on {plan.experiment.device}"
    yield f"Results:   {plan.experiment.results}; {counted(len(plan.done), 'job')} done"
    yield from ("", table(plan, why), "")
    yield from totals(plan)


def table(plan: Plan, why: Mapping[Job, str]) -> str:
    """A row for each rule: jobs, cells, time, and the reasons of its jobs."""
    gpu = plan.experiment.device == "cuda"
    rows = [["rule", "jobs", "cells", "time of all", *["GPU-hours"] * gpu, "of", "why"]]
    for rule in dict.fromkeys(job.rule for job in plan.left):
        jobs = [job for job in plan.left if job.rule == rule]
        seconds = sum(plan.seconds[job] for job in jobs)
        times = [duration(seconds), *[hours(seconds * plan.gpus.get(rule, 0))] * gpu]
        cells = str(sum(len(job.cells) for job in jobs) or "")
        wildcards = where([job.wildcards for job in jobs])
        rows.append([rule, str(len(jobs)), cells, *times, wildcards, reasons(why[job] for job in jobs)])
    return aligned(rows)


def totals(plan: Plan) -> list[str]:
    """All jobs in some lines: time, the longest one, where times are from, downloads, disk, and what is assumed."""
    longest, disk = max(plan.left, key=plan.seconds.get), plan.disk
    least = max(plan.gpu_seconds / GPUS, plan.seconds[longest])
    many = f" ({duration(plan.gpu_seconds)} on one GPU, at least {duration(least)} on {GPUS})"
    gpu = f", {hours(plan.gpu_seconds)} GPU-hours{many}" if plan.gpu_seconds else ""
    parts = ", ".join(f"{name} {machine.amount(size)}" for name, size in disk.items())
    lines = [
        f"All:       {counted(len(plan.left), 'job')}, about {duration(sum(plan.seconds.values()))} one after the "
        f"other{gpu}; the longest: {longest.name} ({duration(plan.seconds[longest])})",
        f"Times:     {speeds(plan)}",
        f"Downloads: {downloads_line(plan.experiment, plan.left)}",
        *([f"Disk:      about {machine.amount(disk.total())} ({parts})"] if parts else []),
        *(f"{name}: does not exist; counts as large as {model} until it does" for name, model in plan.assumed.items()),
    ]
    return [textwrap.fill(line, WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False) for line in lines]


def speeds(plan: Plan) -> str:
    """Where the times of rules are from."""
    rules: dict[str, set[str]] = {}
    for job in plan.left:
        rules.setdefault(job.rule, set()).add(kind_of(job))
    finished = {rule: sum(plan.speed(kind)[1] for kind in kinds) for rule, kinds in rules.items()}
    measured_rules = [f"{rule} ({count})" for rule, count in finished.items() if count]
    priors = [rule for rule, count in finished.items() if rule in plan.gpus and not count]
    texts = [f"of {', '.join(measured_rules)} from finished jobs here"] if measured_rules else []
    papers = f"as if the whole matrix of config.yaml took the paper's {PAPERS:.0f} GPU-hours on H20"
    texts += [f"of {', '.join(priors)} {papers}"] if priors else []
    others = len(measured_rules) + len(priors) < len(rules)
    slower = f", {plan.slower:.1f} times as long" * bool(measured_rules and not plan.gpus)
    usual = "as usual" if plan.gpus else f"as on two quiet cores{slower}"
    texts += [f"of {'the others' if texts else 'all'} {usual}"] if others else []
    return "; ".join(texts)


def reasons(texts: Iterable[str], most: int = 4) -> str:
    """Why jobs run: each reason once, with how many jobs have it where reasons differ."""
    counts = Counter(texts)
    shown = [f"{text} ({count})" if len(counts) > 1 else text for text, count in counts.most_common(most)]
    return "; ".join([*shown, *[f"… ({len(counts)} reasons)"] * (len(counts) > most)])


def where(wildcards: Sequence[Mapping[str, str]]) -> str:
    """The values of the wildcards of jobs; of many values their number."""
    columns = {name: list(dict.fromkeys(one[name] for one in wildcards)) for name in wildcards[0]}
    text = " · ".join(" ".join(values) for values in columns.values())
    if len(text) <= WHERE:
        return text
    plural = {"testset": "test sets", "steps": "step budgets"}
    return " · ".join(
        values[0] if len(values) == 1 else f"{len(values)} {plural.get(name, f'{name}s')}"
        for name, values in columns.items()
    )


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
