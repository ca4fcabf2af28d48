"""What is left to run of a config and what it will take: hours, GPU-hours, disk and downloads, before any of it runs.

The work of a job is tokens × passes × operations of the weights, counted from its params and the lengths of the texts.
How much work a second does is measured from finished jobs, where there are any. Which job runs, Snakemake decides.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from entropy_valley import machine
from entropy_valley.checking import subject
from entropy_valley.checking.subject import BYTES, Size
from entropy_valley.config import Experiment, param_parts
from entropy_valley.config.matrix import DEV, Cell
from entropy_valley.config.param_parts import selector_name, source_guided
from entropy_valley.config.paths import comet_folder
from entropy_valley.decoding.prompt_cache import CachePolicy
from entropy_valley.lengths import find_method
from entropy_valley.model.prompt import PREFIX, attention_of
from entropy_valley.results import system_of
from entropy_valley.runs import downloads
from entropy_valley.runs.audit import DONE, Audit, concerns
from entropy_valley.runs.inventory import Job
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT
from entropy_valley.stats.job_costs import finished_seconds, gpus
from entropy_valley.training.settings import SAVED

PAPERS = 420.0  # GPU-hours on H20 of the paper's "full experimental grid"
# Operations a second, where no job of a kind has finished. On a GPU, that with which the whole matrix of config.yaml
# takes the paper's hours; a test computes it again. On a CPU, those of the demo on two cores: small models are slow.
GPU = 4.6e13
CPU = {"pretrain": 3.6e10, "train": 1.0e10, "translate": 5.1e10, "diagnose": 4.1e10}
CPU |= {"generate": 3.4e9, "latency": 4.6e9, "score": 3.6e10}
# Seconds of a job that runs no model, from the demo; on a GPU's machine some are larger: tens of millions of pairs.
SHORT, USUAL = 0.6, {"corpus": 2.0, "table": 2.5, "figure": 4.0, "comparison": 4.0, "train_comet": 42.0}
LONG = USUAL | {"corpus": 3 * 3600.0, "fetch_backbone": 600.0, "fetch_comet": 120.0, "fetch_dataset": 300.0}
START, LOADED = 4.0, 1e9  # seconds until torch is imported; bytes a second of weights that are loaded
LARGE = Size(4096, 12288, 32, 126464, 32, 32)  # LLaDA-8B's; for a checkpoint whose shape is not known yet
COMET, TOY = 0.58e9, 0.5e6  # parameters of COMET-22 and of the toy COMET, before their files exist
PROBES, BIAS = 6, 12  # lengths that a searching method tries; lengths at which the length statistics probe a pair
# Bytes of UTF-8 of a token; lines of a file that are measured; tokens of a source of WMT19, WMT22 and the demo.
TOKEN, READ, TRAIN, TEST, GRAMMAR = 4, 2000, 30.0, 20.0, 10.0
PAIR, CELL = 400, 1400  # bytes on the disk of a training pair, and of a sentence of a cell, measured in the demo
GPUS, WIDTH, WHERE = 8, 150, 56  # of a node; columns of a line in print, and of its wildcards
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


def with_new_cells(audit: Audit, job: Job) -> Job:
    """A set that has to run, with only the cells that its header does not list or that a change concerns: all others
    are in the store."""
    state, read = audit.job(job), job
    if job.rule == "score" and (translated := audit.inventory.at(job.inputs[0])):
        read = with_new_cells(audit, translated)
    keys = [reason.key for reason in state.reasons if reason.key != "made_from.translations"]
    new = {cell for cell in read.cells if read is not job}
    for cell in job.cells:
        changed = any(not key or concerns(audit.experiment, key, cell) for key in keys)
        if changed or system_of(cell) not in (state.cells or ()):
            new.add(cell)
    return dataclasses.replace(job, cells=tuple(cell for cell in job.cells if cell in new))


@dataclass(frozen=True)
class Text:
    """A corpus or test set: its sentences, and the mean tokens of a source and of a translation."""

    sentences: int
    source: float
    target: float

    @classmethod
    def read(cls, path: Path) -> Text | None:
        """The text of a file: all its lines are counted, the first of them measured. None for a damaged file."""
        with open(path, "rb") as file:
            first = list(itertools.islice(file, READ))
            count = len(first) + sum(1 for _ in file)
        try:
            pairs = [(pair["source"], pair["target"]) for pair in map(json.loads, first)]
            lengths = [fmean(len(text.encode()) / TOKEN for text in side) for side in zip(*pairs, strict=True)]
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
        return cls(count, *lengths) if lengths else None


class Work:
    """Counts floating-point operations. ``texts`` stand for the files of the corpora, by direction and ``train`` or the
    name of a test set."""

    def __init__(self, experiment: Experiment, texts: Mapping[tuple[str, str], Text] | None = None) -> None:
        self.experiment, self._texts = experiment, texts
        self.size = functools.cache(lambda backbone: subject.size(experiment, backbone) or LARGE)
        self.text = functools.cache(self._text)
        self._counted: set[Any] = set()

    def of(self, jobs: Iterable[Job]) -> dict[Job, float]:
        """The operations of each job, in this order: what one set has computed costs the next nothing. 1 for a job that
        runs no model."""
        self._counted.clear()
        kinds = {"pretrain", "train", "translate", "generate", "diagnose", "latency", "score"}
        return {
            job: getattr(self, f"_{kind_of(job)}")(job, json.loads(job.spec)) if kind_of(job) in kinds else 1.0
            for job in jobs
        }

    def _is_new(self, *key: Any) -> bool:
        new = key not in self._counted or not self.experiment.store
        self._counted.add(key)
        return new

    def _pretrain(self, job: Job, spec: dict[str, Any]) -> float:
        settings, texts = spec["pretraining"], [self.text(direction, "train") for direction in spec["prompts"]]
        tokens = settings["steps"] * settings["batch"] * fmean(text.source + text.target for text in texts)
        return 3 * self.size(job.wildcards["backbone"]).pass_work(tokens, tokens / 2)  # forward, and backward twice

    def _train(self, job: Job, spec: dict[str, Any]) -> float:
        settings, text = spec["training"], self.text(job.wildcards["direction"], "train")
        per_epoch = min(text.sentences, settings.get("limit") or text.sentences) / settings["global_batch"]
        pairs = settings["global_batch"] * (settings.get("max_steps") or settings["epochs"] * per_epoch)
        tokens = text.source + text.target + settings["loss"].get("eos_padding", 0) / 2
        return self.size(job.wildcards["backbone"]).step_work(pairs * tokens, pairs * text.target / 2, False)

    def _generate(self, job: Job, spec: dict[str, Any]) -> float:
        """Beam search of the autoregressive baseline."""
        beams, size, total = spec["beams"], self.size(job.wildcards["backbone"]), 0.0
        for text in (self.text(cell.run.direction, cell.testset) for cell in job.cells):
            total += text.sentences * size.pass_work(text.source + beams * text.target, beams * text.target)
        return total

    def _translate(self, job: Job, spec: dict[str, Any]) -> float:
        backbone, total = job.wildcards["backbone"], 0.0
        train = self.text(job.wildcards["direction"], "train")
        for name, fit in spec.get("fits", {}).items():
            if job.cells and self._is_new(job.cells[0].run, name):
                statistics = name == "length_statistics"
                pairs = fit["pairs"] + BIAS * fit["bias_pairs"] if statistics else fit["training"]["pairs"]
                total += pairs * self._probing(backbone, spec, train, 1)
        for cell in job.cells:
            text, settings = self.text(cell.run.direction, cell.testset), spec["methods"][cell.method]
            for method in filter(None, (cell.method, settings.get("of"))):  # a reassignment needs another's canvases
                if self._is_new(cell.run, cell.testset, method):
                    probes = self.probes(method, spec["methods"][method])
                    total += text.sentences * self._probing(backbone, spec, text, probes)
            if self._is_new(cell):
                canvases = settings.get("k") or settings.get("beam") or 2 * settings.get("radius", 0) + 1
                total += text.sentences * canvases * self._filling(cell, spec, text)
        return total

    def _latency(self, job: Job, spec: dict[str, Any]) -> float:
        (cell,), rounds = job.cells, 2 * (spec["repeats"] + 1)  # alone, and batched
        text, probes = self.text(cell.run.direction, cell.testset), self.probes(cell.method, spec["selector"])
        probing = self._probing(cell.run.backbone, spec, text, probes)
        return rounds * spec["sentences"] * (self._filling(cell, spec, text) + probing)

    def _diagnose(self, job: Job, spec: dict[str, Any]) -> float:
        total = 0.0
        for kind, testset in ((kind, name) for kind, names in spec["testsets"].items() for name in names):
            text = self.text(job.wildcards["direction"], testset)
            passes = 2 * text.sentences  # with and without the source
            if kind == "valley":
                lengths = 2 * spec[kind]["offset"] + 1 + len(spec[kind]["ratios"])
                passes = lengths * min(text.sentences, spec[kind]["sentences"])
            total += passes * self._probing(job.wildcards["backbone"], spec, text, 1)
        return total

    def _score(self, job: Job, spec: dict[str, Any]) -> float:
        """COMET reads each translation, with its source and its reference."""
        texts = [self.text(cell.run.direction, cell.testset) for cell in job.cells if self._is_new("score", cell)]
        return 2 * self._comet * sum(text.sentences * (text.source + 2 * text.target) for text in texts)

    def _filling(self, cell: Cell, spec: dict[str, Any], text: Text) -> float:
        """One canvas: a pass for each step that reveals something, twice where the order looks at the SIG."""
        slots = text.target + 1
        steps = min(float(cell.steps), slots)
        tokens = _prompted(spec, steps) * (len(spec["prompt"]) / TOKEN + text.source) + steps * slots
        passes = 2 if source_guided(self.experiment, cell.order) else 1
        return passes * self.size(cell.run.backbone).pass_work(tokens, slots * (steps + 1) / 2)

    def _probing(self, backbone: str, spec: dict[str, Any], text: Text, probes: float) -> float:
        """So many passes over all-mask canvases of a sentence."""
        tokens = _prompted(spec, probes) * (len(spec["prompt"]) / TOKEN + text.source) + probes * text.target
        return self.size(backbone).pass_work(tokens, probes * text.target)

    def probes(self, method: str, settings: Mapping[str, Any]) -> float:
        """The passes by which a length method chooses a canvas."""
        name = selector_name(self.experiment, method)
        kind = None if name == "reassigned" else find_method(name, {})
        if kind is None or not getattr(kind, "probes", True):
            return 0
        ratios, drafts = settings.get("ratios"), getattr(kind, "draft_steps", 0)
        tried = len(ratios) if isinstance(ratios, list) else settings.get("candidates", PROBES)
        return tried * (1 + (drafts if isinstance(drafts, int) else settings.get("steps", 0)))

    @functools.cached_property
    def _comet(self) -> float:
        """Parameters of the main COMET: those of its file, if it exists."""
        path = Path(comet_folder(self.experiment))
        path = path / CHECKPOINT if path.is_dir() else path
        usual = TOY if self.experiment.scoring.comet.training else COMET
        return path.stat().st_size / BYTES["float32"] if path.is_file() else usual

    def _text(self, direction: str, name: str) -> Text:
        """That of the file, if it exists; else what is usual."""
        if self._texts is not None:
            return self._texts[direction, name]
        folder = Path(self.experiment.results, "corpus", direction)
        path = folder / "train.jsonl" if name == "train" else folder / "test" / f"{name}.jsonl"
        if path.is_file() and (text := Text.read(path)):
            return text
        drawn = name in ("train", DEV)
        source = self.experiment.sources[self.experiment.directions[direction].train if drawn else name]
        tokens = GRAMMAR if source.endless else TRAIN if drawn else TEST
        ratios = getattr(self.experiment.length_methods, "ratio", None)
        ratio = ratios.ratios.get(direction, 1.0) if ratios and isinstance(ratios.ratios, dict) else 1.0
        pairs = self.experiment.corpus_of(direction).train
        sentences = pairs if name == "train" else param_parts.sentences(self.experiment, direction, name)
        return Text(sentences, tokens, ratio * tokens)


def _prompted(spec: Mapping[str, Any], passes: float) -> float:
    """How many of the passes over a sentence compute its prompt."""
    if attention_of(spec) == PREFIX:
        return min(1, passes)
    refresh = CachePolicy.of(spec).refresh
    return passes if refresh is None else math.ceil(passes / refresh)


def kind_of(job: Job) -> str:
    """Jobs of a kind do as much work a second: a rule; autoregressive translations are a kind of their own."""
    return "generate" if job.rule == "translate" and job.cells and not job.cells[0].order else job.rule


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
        self._work = {job: work[part] / max(1, self.gpus.get(job.rule, 0)) for job, part in parts.items()}
        self.speeds = self._measured()
        self.seconds = {job: self._start(job) + self._work[job] / self.speed(kind_of(job))[0] for job in self.left}
        self.gpu_seconds = sum(took * self.gpus.get(job.rule, 0) for job, took in self.seconds.items())

    @classmethod
    def of(cls, audit: Audit, targets: Collection[str] | None = None) -> Plan:
        """Of all that is left to run so that files are made; None: all of the config."""
        return cls.of_jobs(audit, *left(audit, targets))

    @classmethod
    def of_jobs(cls, audit: Audit, left: Sequence[Job], done: Sequence[Job]) -> Plan:
        """Of jobs that Snakemake has chosen."""
        return cls(audit.experiment, left, done, {job: with_new_cells(audit, job) for job in left if job.cells})

    def speed(self, kind: str) -> tuple[float, int]:
        """Work a second of a kind of jobs, and how many finished ones say so."""
        usual = GPU if self.gpus else CPU.get(kind)
        return self.speeds.get(kind) or (
            usual if kind in CPU else 1 / (LONG if self.gpus else USUAL).get(kind, SHORT),
            0,
        )

    def _measured(self) -> dict[str, tuple[float, int]]:
        """The speeds of the kinds of which jobs have finished."""
        seconds, groups = measured(self.experiment.results), {}
        for job in self.done:
            if job.name in seconds and self._work[job]:
                took = seconds[job.name]
                groups.setdefault(kind_of(job), []).append((self._work[job], max(took - self._start(job), took / 2)))
        return {kind: (sum(work for work, _ in rows) / max(sum(took for _, took in rows), 1e-9), len(rows))
                for kind, rows in groups.items()}  # fmt: skip

    def _start(self, job: Job) -> float:
        """Seconds until a model is loaded, once for each shard."""
        if kind_of(job) not in CPU or job.rule == "score":
            return START * (job.rule == "score")
        weights = self._model.size(job.wildcards["backbone"]).parameters * BYTES[self.experiment.decoding.precision]
        return (START + weights / LOADED) * (self.experiment.decoding.shards if job.rule == "translate" else 1)

    @property
    def assumed(self) -> dict[str, str]:
        """Backbones whose size nothing says, each with the model that it counts as."""
        used = dict.fromkeys(job.wildcards["backbone"] for job in self.left if "backbone" in job.wildcards)
        return {name: "LLaDA-8B" for name in used if subject.size(self.experiment, name) is None}

    @property
    def disk(self) -> Counter[str]:
        """Bytes that the jobs leave on the disk, by what they are."""
        sizes, config = Counter(), self.experiment
        kept = (one for one in downloads.downloads(config, self.left) if one.kept)
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
                rows = (param_parts.sentences(config, cell.run.direction, cell.testset) for cell in job.cells)
                sizes["cells"] += CELL * sum(rows)
        return +sizes


def measured(results: str | Path) -> dict[str, float]:
    """Seconds of each finished job by its name; those of the shards of a translation together."""
    seconds: Counter[str] = Counter()
    for name, took in finished_seconds(Path(results, "benchmarks")).items():
        seconds[re.sub(r"^shard/(.+)\.\d+of\d+$", r"translate/\1", name)] += took
    return dict(seconds)


# In print.


def report(plan: Plan, configs: Iterable[str | Path]) -> str:
    """What `entropy-valley plan` prints."""
    prior = any(job.rule in plan.gpus and not plan.speed(kind_of(job))[1] for job in plan.left)
    rows = ["", table(plan), ""] if plan.left else []
    return "\n".join(
        [f"Config:    {', '.join(map(str, configs))}", *heading(plan), *rows, *totals(plan), *["", PRIOR] * prior]
    )


def heading(plan: Plan) -> list[str]:
    """Which config it is."""
    matrix = plan.experiment.matrix
    trained = dict.fromkeys(plan.experiment.directions[name].train for name in matrix.directions)
    return [
        f"Models:    {', '.join(matrix.backbones)}; pairs of {', '.join(trained)}; on {plan.experiment.device}",
        f"Results:   {plan.experiment.results}; {counted(len(plan.done), 'job')} done",
    ]


def table(plan: Plan, why: Mapping[Job, str] | None = None) -> str:
    """A row for each rule: jobs, cells, time, and where the speed is from; with ``why`` instead the reasons of jobs."""
    gpu = plan.experiment.device == "cuda"
    rows = [["rule", "jobs", "cells", "time of all", *["GPU-hours"] * gpu, "of", "why" if why else "speed from"]]
    for rule in dict.fromkeys(job.rule for job in plan.left):
        jobs = [job for job in plan.left if job.rule == rule]
        seconds, held = sum(plan.seconds[job] for job in jobs), plan.gpus.get(rule, 0)
        times = [duration(seconds), *[hours(seconds * held)] * gpu]
        finished = sum(plan.speed(kind)[1] for kind in dict.fromkeys(map(kind_of, jobs)))
        last = counted(finished, "finished job") if finished else "the paper" if held else "usual"
        if why:
            last = reasons(why[job] for job in jobs)
        cells = str(sum(len(job.cells) for job in jobs) or "")
        rows.append([rule, str(len(jobs)), cells, *times, where([job.wildcards for job in jobs]), last])
    return aligned(rows)


def totals(plan: Plan) -> list[str]:
    """All jobs in some lines: time, the longest one, downloads, disk, and what is assumed."""
    if not plan.left:
        return ["Nothing is left to run."]
    many = f" (on {GPUS} GPUs {duration(plan.gpu_seconds / GPUS)} at best)"
    gpu = f", {hours(plan.gpu_seconds)} GPU-hours{many}" if plan.gpu_seconds else ""
    longest, disk = max(plan.left, key=plan.seconds.get), plan.disk
    parts = ", ".join(f"{name} {machine.amount(size)}" for name, size in disk.items())
    lines = [
        f"All:       {counted(len(plan.left), 'job')}, about {duration(sum(plan.seconds.values()))} one after the "
        f"other{gpu}; the longest: {longest.name} ({duration(plan.seconds[longest])})",
        f"Downloads: {downloads.summary(plan.experiment, plan.left)}",
        f"Disk:      about {machine.amount(disk.total())}" + f" ({parts})" * bool(parts),
        *(f"{name}: does not exist; counts as large as {model} until it does" for name, model in plan.assumed.items()),
    ]
    return [textwrap.fill(line, WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False) for line in lines]


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
