"""What each cell is made from, job by job: the files, params and log of every result on its way.

The rules of the workflow say the same (a test compares them); here it is known without Snakemake's graph, in a second
for thousands of cells.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from entropy_valley.experiment import paths
from entropy_valley.experiment.matrix import RUN_NAME, Cell, Run
from entropy_valley.experiment.origins import Origins
from entropy_valley.experiment.params import jobs, methods
from entropy_valley.experiment.result import Result, once
from entropy_valley.experiment.schema import Experiment

DECODED = ("hypotheses.jsonl", "decoding.json")
SCORED = ("scores.jsonl", "scores.json")
# By rule: what length methods read of their run, and what tables and figures read of a run on a test set.
FITTED = {
    "length_statistics": ("length_statistics.json",),
    "length_head": ("length_head.safetensors", "length_head.json"),
}
DIAGNOSTICS = {"valley": ("valley.json",), "sig_concentration": ("sig.jsonl",)}
FILES_OF_CELL = dict.fromkeys(DECODED, "hypotheses") | dict.fromkeys(SCORED, "scores") | {"latency.json": "latency"}


class Chain(Origins):
    """The results that the cells of a config are made from, each once."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._reassigned = set(methods.reassigned_methods(experiment))

    @once
    def scores(self, cell: Cell) -> Result:
        """The end of a cell's chain."""
        run, spec = cell.run, self._params(jobs.scoring, cell.run.direction)
        needs = (self.testset(run.direction, cell.testset), self.hypotheses(cell), *self.comet())
        of = {**_wildcards(run), "testset": cell.testset, "system": cell.system}
        log = self._log("score", *_parts(run), cell.testset, cell.system)
        folder = cell.folder(self.root)
        shared = f"{self.root}/logs/comet/{run.direction}.{cell.testset}."
        return Result("score", of, folder, SCORED, log, spec, needs, True, shared)

    @once
    def hypotheses(self, cell: Cell) -> Result:
        """The translations of a cell."""
        return self._decode(cell) if cell.order else self._generate(cell)

    def _decode(self, cell: Cell) -> Result:
        run, spec = cell.run, self._params(jobs.decoding, cell.run, cell.order, cell.steps)
        needs = (*self._read(run, cell.testset), self.canvas(run, cell.testset, cell.method))
        log = self._system_log("decode", cell)
        folder, shared = cell.folder(self.root), self._inference(run)
        return Result("decode", _setting(cell), folder, DECODED, log, spec, needs, True, shared)

    def _generate(self, cell: Cell) -> Result:
        run, spec = cell.run, self._params(jobs.generation, cell.run)
        of = {**_wildcards(run), "testset": cell.testset, "beams": cell.method.removeprefix("beam")}
        log, needs = self._log("generate", *_parts(run), cell.testset, cell.method), self._read(run, cell.testset)
        return Result("generate", of, cell.folder(self.root), DECODED, log, spec, needs, own=True)

    @once
    def canvas(self, run: Run, testset: str, method: str) -> Result:
        """The lengths that a method chooses; of a control, those that it reassigns."""
        if method in self._reassigned:
            of = getattr(self.experiment.length_methods, method).of
            rule, more = "reassigned_canvas", (self.canvas(run, testset, of),)
        else:
            rule, more = "canvas", tuple(self._fitted(run, method))
        folder, log = f"{run.folder(self.root)}/{testset}/{method}", self._log("canvas", *_parts(run), testset, method)
        spec, needs = self._params(jobs.canvas, run, method), (*self._read(run, testset), *more)
        wildcards = {**_wildcards(run), "testset": testset, "method": method}
        return Result(rule, wildcards, folder, ("canvas.jsonl",), log, spec, needs, True, self._inference(run))

    def _fitted(self, run: Run, method: str) -> Iterator[Result]:
        """What a method reads of its run."""
        if methods.needs_statistics(self.experiment, method):
            yield self._fit("length_statistics", run)
        if methods.needs_length_head(self.experiment, method):
            yield self._fit("length_head", run)

    @once
    def _fit(self, rule: str, run: Run) -> Result:
        spec, needs = self._params(getattr(jobs, rule), run), (*self._model(run), self.corpus(run.direction))
        folder, log = run.folder(self.root), self._log(rule, *_parts(run))
        return Result(rule, _wildcards(run), folder, FITTED[rule], log, spec, needs, shared=self._inference(run))

    def _read(self, run: Run, testset: str) -> tuple[Result, ...]:
        """What a job reads that runs a run's model on a test set."""
        return (*self._model(run), self.testset(run.direction, testset))

    def _model(self, run: Run) -> tuple[Result, ...]:
        adapted = not self.experiment.backbones[run.backbone].zero_shot
        return (self.adapter(paths.adapter_run(self.experiment, run)),) if adapted else (self.backbone(run.backbone),)

    def at(self, path: str) -> Result | None:
        """The result of a run that a file belongs to; None for any other file."""
        match os.path.relpath(path, self.root).split("/"):
            case [direction, backbone, run, *parts] if re.fullmatch(f"seed{RUN_NAME}", run):
                known = direction in self.experiment.directions and backbone in self.experiment.backbones
                return self._of(Run.named(direction, backbone, run), parts) if known else None
            case [direction, backbone, "tokens", name]:
                return self.tokens(direction, backbone, name.removesuffix(".jsonl"))
            case ["corpus", direction, "length_ratios.json"]:
                return self.length_ratios(direction)
        return None

    def _of(self, run: Run, parts: Sequence[str]) -> Result | None:
        """The result of a path within a run's folder."""
        match parts:
            case ["adapter", _]:
                return self.adapter(run)
            case [name] if rule := _rule_of(name, FITTED):
                return self._fit(rule, run)
            case [testset, name] if rule := _rule_of(name, DIAGNOSTICS):
                return self._diagnostic(rule, run, testset)
            case [testset, method, "canvas.jsonl"]:
                return self.canvas(run, testset, method)
            case [testset, *system, name] if system and name in FILES_OF_CELL:
                return getattr(self, FILES_OF_CELL[name])(Cell.named(run, testset, "/".join(system)))
        return None

    @once
    def _diagnostic(self, rule: str, run: Run, testset: str) -> Result:
        of, folder = {**_wildcards(run), "testset": testset}, f"{run.folder(self.root)}/{testset}"
        spec, log = self._params(getattr(jobs, rule), run), self._log(rule, *_parts(run), testset)
        needs, shared = self._read(run, testset), self._inference(run)
        return Result(rule, of, folder, DIAGNOSTICS[rule], log, spec, needs, shared=shared)

    @once
    def latency(self, cell: Cell) -> Result:
        """How long a cell's method takes."""
        of, needs = _setting(cell), (*self._read(cell.run, cell.testset), *self._fitted(cell.run, cell.method))
        spec = self._params(jobs.latency, cell.run, cell.method, cell.order, cell.steps)
        folder, log = cell.folder(self.root), self._system_log("latency", cell)
        return Result("latency", of, folder, ("latency.json",), log, spec, needs)

    @once
    def adapter(self, run: Run) -> Result:
        """A trained adapter, or a given one."""
        given, backbone = self.experiment.adapters == "released", self.backbone(run.backbone)
        rule, params = ("adopt_adapter", jobs.adapter) if given else ("train", jobs.training)
        files = ("adapter.json", "adapter_config.json", "adapter_model.safetensors")
        needs = (backbone,) if given else (self.corpus(run.direction), backbone)
        folder, log = f"{run.folder(self.root)}/adapter", self._log(rule, *_parts(run))
        return Result(rule, _wildcards(run), folder, files, log, self._params(params, run), needs)

    def _inference(self, run: Run) -> str:
        """How the logs of the job begin that loads a run's model."""
        return f"{self.root}/logs/inference/{'.'.join(_parts(run))}."

    def _system_log(self, rule: str, cell: Cell) -> str:
        return self._log(rule, *_parts(cell.run), cell.testset, cell.method, f"{cell.order}-T{cell.steps}")


def _rule_of(name: str, files: Mapping[str, Sequence[str]]) -> str | None:
    return next((rule for rule, names in files.items() if name in names), None)


def _wildcards(run: Run) -> dict[str, str]:
    return {"direction": run.direction, "backbone": run.backbone, "seed": run.name.removeprefix("seed")}


def _setting(cell: Cell) -> dict[str, str]:
    of = {**_wildcards(cell.run), "testset": cell.testset, "method": cell.method}
    return {**of, "order": cell.order, "steps": str(cell.steps)}


def _parts(run: Run) -> tuple[str, str, str]:
    """A run in the names of logs."""
    return (run.direction, run.backbone, run.name)
