"""What jobs need of this machine: disk, memory, open files, lengths of names.

Disk and memory are estimates, and low ones: from the sizes of models by their shape, and from what a pair and a
sentence of a cell took in the demo. So nothing is said of jobs that would have had room.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from entropy_valley import limits
from entropy_valley.checking import subject
from entropy_valley.checking.line import Check, CheckError
from entropy_valley.checking.sizes import BYTES, RELEASED
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.matrix import Cell
from entropy_valley.experiment.params.corpora import both_ways, sentences
from entropy_valley.limits import amount
from entropy_valley.scoring import comet_checkpoint
from entropy_valley.training.settings import SAVED

# Bytes: of a training pair of WMT19 (assumed); and measured, of a pair while pairs are drawn (docs/data.md: 442 MB
# for 404,000), and of a sentence of a cell in the demo: canvas, translation, scores, and their part of the store.
PAIR, DRAWN, CELL = 400, 1000, 1400
TRAINED = 24  # bytes of memory that an adapter's parameter takes in its training: docs/performance.md
LOADING = ("translate", "diagnose", "latency", "train")
FILES, FILES_OF_JOB = 64, 4  # measured in the demo: Snakemake had 15 open with two jobs, a training 12
ADDED = len(".12345678") + len(".1.log.link")  # what a name gets while its file is written


class Job(Protocol):
    """A job of :mod:`entropy_valley.runs.inventory`."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...]
    cells: tuple[Cell, ...]
    name: str  # the rule and its wildcards, as logs are named


def checks(experiment: Experiment, jobs: Sequence[Job], cores: int) -> Iterator[tuple[str, Check]]:
    """Whether this machine has what these jobs need if ``cores`` of it run them."""
    kinds = {
        "disk": disk(experiment, jobs),
        "memory": memory(experiment, jobs),
        "open files": open_files(min(cores, len(jobs))),
        "names of files": names(experiment, jobs),
    }
    for name, problems in kinds.items():
        yield name, partial(_check, problems, f"enough for {len(jobs)} jobs")


def _check(problems: Iterable[str], otherwise: str) -> str:
    if found := list(problems):
        raise CheckError("; ".join(found))
    return otherwise


def disk(experiment: Experiment, jobs: Iterable[Job]) -> Iterator[str]:
    """File systems that are too small for what the jobs leave, by what takes most."""
    needed: dict[int, Counter[tuple[str, str]]] = {}
    for folder, what, size in left(experiment, jobs):
        needed.setdefault(limits.device(folder), Counter())[folder, what] += size
    for parts in needed.values():
        folder, needs = next(iter(parts))[0], parts.total()
        if needs > (free := limits.free(folder)):
            listed = ", ".join(f"{what} {amount(size)}" for (_, what), size in parts.most_common())
            yield (
                f"needs an estimated {amount(needs)} or more ({listed}), {amount(free)} are free in "
                f"{limits.there(folder)}. Free {amount(needs - free)}, or move `results` or `models`"
            )


def left(experiment: Experiment, jobs: Iterable[Job]) -> Iterator[tuple[str, str, int]]:
    """Folder, kind and bytes of what each job leaves, where that is known."""
    work = 0
    for job in jobs:
        name = job.wildcards.get("backbone", "")
        if job.rule == "fetch_backbone" and not subject.is_there(experiment, name):
            yield experiment.models, "downloaded models", RELEASED * _parameters(experiment, name)
        elif job.rule == "fetch_comet" and not Path(experiment.models, job.wildcards["checkpoint"]).is_dir():
            yield experiment.models, "COMET", comet_checkpoint.size(job.wildcards["checkpoint"])
        elif job.rule == "pretrain":
            yield experiment.results, "pre-trained models", 4 * _parameters(experiment, name)
        elif job.rule == "corpus":
            yield experiment.results, "training pairs", PAIR * _pairs(experiment, job.wildcards["direction"])
        elif job.rule == "translate":
            rows = sum(sentences(experiment, cell.run.direction, cell.testset) for cell in job.cells)
            yield experiment.results, "cells", CELL * rows
        elif job.rule == "train":
            yield experiment.results, "adapters", 4 * _adapter(experiment, job)
            work = max(work, 2 * SAVED * _adapter(experiment, job))  # a checkpoint is written beside the one before
    yield experiment.results, "checkpoints of a training", work


def memory(experiment: Experiment, jobs: Iterable[Job]) -> Iterator[str]:
    """The job that needs most memory, if this machine has less. The memory of a GPU other checks look at."""
    size, what = max((_held(experiment, job) for job in jobs), default=(0, ""))
    if size > (there := limits.memory()):
        yield (
            f"{what} needs an estimated {amount(size)} or more, this machine has {amount(there)}. "
            "Use a larger one, or ask for less"
        )


def _held(experiment: Experiment, job: Job) -> tuple[int, str]:
    """What a job holds in memory, in bytes and words, where that is known."""
    name = job.wildcards.get("backbone", "")
    if job.rule == "corpus":
        return _drawn(experiment, job.wildcards["direction"])
    if job.rule == "pretrain":
        return SAVED * _parameters(experiment, name), f"pre-training {name}"  # weights, gradients, AdamW's moments
    if job.rule not in LOADING or experiment.device != "cpu":
        return 0, job.rule
    trained = job.rule == "train"
    precision = (experiment.training if trained else experiment.decoding).precision
    added = TRAINED * _adapter(experiment, job) if trained else 0
    return _parameters(experiment, name) * BYTES[precision] + added, f"{name} in {precision} (rule {job.rule})"


def _drawn(experiment: Experiment, direction: str) -> tuple[int, str]:
    pairs = _pairs(experiment, direction) * (1 + both_ways(experiment, direction))
    return DRAWN * pairs, f"drawing {pairs:,} training pairs ({direction})"


def _pairs(experiment: Experiment, direction: str) -> int:
    """Pairs that are drawn: as many as the config allows, or as the source has; 0 where that is not known."""
    settings, source = experiment.corpus_of(direction), experiment.sources[experiment.directions[direction].train]
    most = settings.train + settings.dev
    return most if source.endless else min(most, source.total or 0)


def open_files(jobs: int) -> Iterator[str]:
    """The limit of open files, where it is too low for so many jobs at once."""
    needed, there = FILES + FILES_OF_JOB * jobs, limits.open_files()
    if 0 <= there < needed:
        said = f"{jobs} jobs at once need about {needed}, {there} are allowed"
        yield f"{said}. Run `ulimit -n {needed}` first"


def names(experiment: Experiment, jobs: Iterable[Job]) -> Iterator[str]:
    """The longest name and the longest path, where the file system does not take them."""
    paths = [path for job in jobs for path in (*job.outputs, f"{experiment.results}/logs/{job.name}.log")]
    if not paths:
        return
    path = max(paths, key=_name)
    if (needed := _name(path) + ADDED) > (most := limits.longest_name(path)):
        yield (
            f"a name in {path} needs {needed} bytes while it is written, {most} are allowed. Shorten the names of "
            "backbones, test sets, methods or orders"
        )
    path = max(paths, key=len)
    if (needed := len(os.fsencode(Path(path).absolute())) + ADDED + 1) > (most := limits.longest_path(path)):
        yield f"{path} needs {needed} bytes, {most} are allowed. Give `results` a shorter path"


def _name(path: str) -> int:
    """Bytes of the longest name in a path."""
    return max(len(os.fsencode(part)) for part in path.split("/"))


def _parameters(experiment: Experiment, name: str) -> int:
    return size.parameters if (size := subject.size(experiment, name)) else 0


def _adapter(experiment: Experiment, job: Job) -> int:
    """Parameters of the adapter of a training."""
    size = subject.size(experiment, job.wildcards["backbone"])
    return size.adapter(experiment.training.lora.rank) if size else 0
