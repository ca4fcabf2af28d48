"""What the targets of a Snakemake run ask of the models: which jobs of each training run, and which cells are scored.

One job loads a run's model and does the work of all jobs that read it (rule ``inference``). It must know which of them
are asked for, so that asking for one cell computes that cell alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from entropy_valley.experiment.chain import Chain
from entropy_valley.experiment.matrix import Cell, Run
from entropy_valley.experiment.params import methods
from entropy_valley.experiment.result import Result
from entropy_valley.experiment.schema import Experiment

FILES = {
    "length_statistics": ("length_statistics.json",),
    "length_head": ("length_head.safetensors", "length_head.json"),
    "valley": ("valley.json",),
    "sig_concentration": ("sig.jsonl",),
}
RULES = {name: rule for rule, names in FILES.items() for name in names}
DECODED = ("hypotheses.jsonl", "decoding.json", "scores.jsonl", "scores.json")


@dataclass(frozen=True)
class ModelJob:
    """A job that reads a model: its rule and its run; where the rule has them test set, method, order, step budget."""

    rule: str
    run: Run
    testset: str = ""
    method: str = ""
    order: str = ""
    steps: int = 0

    def result(self, chain: Chain) -> Result:
        """What it writes."""
        if self.rule == "canvas":
            return chain.canvas(self.run, self.testset, self.method)
        if self.rule == "decode":
            return chain.hypotheses(Cell(self.run, self.testset, self.method, self.order, self.steps))
        files = FILES[self.rule]
        if self.testset:
            return chain.diagnostic(self.rule, self.run, self.testset, *files)
        return chain.of_run(self.rule, self.run, *files)


def asked_files(
    targets: Iterable[str], everything: Callable[[], Sequence[str]], reads: Callable[[str], Sequence[str]]
) -> list[str]:
    """The files that targets stand for: a report's file for what the report ``reads``, a rule's name (or no target) for
    ``everything``."""
    files: dict[str, None] = {}
    for target in list(targets) or ["all"]:
        path = os.path.normpath(target)
        files |= dict.fromkeys((reads(path) or [path]) if "/" in path else everything())
    return list(files)


def model_jobs(experiment: Experiment, files: Iterable[str]) -> dict[Run, list[ModelJob]]:
    """The jobs of each run that must read its model so that these files can be made, each once."""
    found: dict[Run, dict[ModelJob, None]] = {}
    for run, parts in _of_runs(experiment, files):
        for job in _jobs_of(experiment, run, parts):
            found.setdefault(run, {})[job] = None
    return {run: list(jobs_of_run) for run, jobs_of_run in found.items()}


def scored_cells(experiment: Experiment, files: Iterable[str]) -> list[Cell]:
    """The cells whose scores are among these files, each once."""
    cells: dict[Cell, None] = {}
    for run, parts in _of_runs(experiment, files):
        match parts:
            case [testset, *system, "scores.json" | "scores.jsonl"]:
                cells[cell_of(run, testset, "/".join(system))] = None
    return list(cells)


def cell_of(run: Run, testset: str, system: str) -> Cell:
    """The cell of a system as its path names it: ``ev/med-T32``, ``beam4``."""
    method, *order_and_steps = system.split("/")
    return Cell(run, testset, method, *(_order_and_steps(order_and_steps[0]) if order_and_steps else ()))


def request(chain: Chain, job: ModelJob) -> dict[str, Any]:
    """What ``inference.py`` is asked for: the job's rule and params, and the files of sentences that it reads."""
    train, dev, _ = chain.corpus(job.run.direction).paths
    asked = {"rule": job.rule, "spec": job.result(chain).spec, "testset": train}
    if job.testset:
        (asked["testset"],) = chain.testset(job.run.direction, job.testset).paths
    if job.rule == "length_head":
        asked["dev"] = dev
    if job.rule == "decode":
        asked["choose"] = _choice(chain, job.run, job.testset, job.method)
    return asked


def _of_runs(experiment: Experiment, files: Iterable[str]) -> Iterator[tuple[Run, list[str]]]:
    """The files that are in a run's folder, as its run and the parts of the path below."""
    for file in files:
        match os.path.relpath(file, experiment.results).split("/"):
            case [direction, backbone, seed, *parts] if re.fullmatch(r"seed\d+", seed):
                yield Run(direction, backbone, int(seed.removeprefix("seed"))), parts


def _jobs_of(experiment: Experiment, run: Run, parts: Sequence[str]) -> list[ModelJob]:
    """The job that makes a file, after those that it needs; none for a file that no such job makes."""
    match parts:
        case [*testset, name] if name in RULES:
            return [ModelJob(RULES[name], run, *testset)]
        case [testset, method, "canvas.jsonl"]:
            return _canvas(experiment, run, testset, method)
        case [testset, method, _, "latency.json"]:
            return _files_of_run(experiment, run, method)
        case [testset, method, system, name] if name in DECODED:
            job = ModelJob("decode", run, testset, method, *_order_and_steps(system))
            return [*_canvas(experiment, run, testset, method), job]
    return []


def _order_and_steps(system: str) -> tuple[str, int]:
    order, steps = system.rsplit("-T", 1)
    return order, int(steps)


def _canvas(experiment: Experiment, run: Run, testset: str, method: str) -> list[ModelJob]:
    """What a method's canvases need of the model; nothing for Oracle and Fixed Ratio."""
    if method in methods.reassigned_methods(experiment):
        return _canvas(experiment, run, testset, getattr(experiment.length_methods, method).of)
    own = [ModelJob("canvas", run, testset, method)] if methods.canvas_needs_model(experiment, method) else []
    return [*_files_of_run(experiment, run, method), *own]


def _files_of_run(experiment: Experiment, run: Run, method: str) -> list[ModelJob]:
    """The jobs that make what a method reads of its run."""
    needs = {"length_statistics": methods.needs_statistics, "length_head": methods.needs_length_head}
    return [ModelJob(rule, run) for rule, needed in needs.items() if needed(experiment, method)]


def _choice(chain: Chain, run: Run, testset: str, method: str) -> dict[str, Any]:
    """How the canvases of a method are chosen: by itself, or dealt from those of another one."""
    canvases = chain.canvas(run, testset, method)
    choice = {"rule": canvases.rule, "spec": canvases.spec}
    if canvases.rule == "reassigned_canvas":
        choice["of"] = _choice(chain, run, testset, getattr(chain.experiment.length_methods, method).of)
    return choice
