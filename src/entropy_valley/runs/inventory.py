"""Every job of a config: its rule, what it writes, what it reads, and the params that its result depends on.

The audit, the plan and the ancestry of tables read this. It decides nothing: which job runs is Snakemake's answer
alone. The params are those of the rules, from the same functions; what a job reads is found by its path.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from entropy_valley import files, revisions, tables
from entropy_valley.config import Experiment, params, paths
from entropy_valley.config.matrix import DEV, RUN_NAME, Cell, CellSet, Run, sets_of
from entropy_valley.model.adapters import FACTS
from entropy_valley.model.checkpoint import MANIFEST
from entropy_valley.results import DIAGNOSTICS, SCORES, TRANSLATIONS
from entropy_valley.runs import limits
from entropy_valley.tables import document, pages
from entropy_valley.tables.base import Report

Files = tuple[str, ...]
# The rules with `localrule: True`, whose jobs run where Snakemake does and not on a cluster: they download, or take
# seconds.
LOCAL = ("fetch_backbone", "fetch_comet", "fetch_dataset", "adopt_adapter", "testset", "dev_as_testset", "overlap")
LOCAL += ("tokens", "human_forms", "human_ratings", "table", "comparison", "figure", "page", "document", "pdf")


@dataclass(frozen=True, eq=False)
class Job:
    """One job. ``outputs`` are its files, the first of which has the record beside it; ``inputs`` are files of other
    jobs; ``spec`` is what Snakemake compares, "" for a rule without params; ``cells`` are those of a set, whose
    translation is divided into ``shards``."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...]
    spec: str
    inputs: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = field(default=(), repr=False)
    shards: int = 1

    @property
    def name(self) -> str:
        """The rule and its wildcards, as logs and benchmarks are named: ``translate/en-zh.llada-8b.seed1.matrix``."""
        values = [f"seed{value}" if key == "seed" else value for key, value in self.wildcards.items()]
        return "/".join(filter(None, [self.rule, ".".join(values)]))


class Inventory:
    """The jobs of a config. ``reports`` are its tables and figures by path, see :func:`reports.configured`."""

    def __init__(self, experiment: Experiment, reported: Mapping[str, Report] | None = None) -> None:
        self.experiment, self.root, self.sets = experiment, experiment.results, sets_of(experiment)
        self.reports = tables.configured(experiment) if reported is None else reported
        self._jobs: dict[str, Job | None] = {}  # by path

    def all(self) -> list[Job]:
        """Every job that `rule all` may need, each after those that it reads."""
        scored = (one.scores(self.root) for one in self.sets.all)
        shown = (f"{self.root}/{path}.csv" for path, report in self.reports.items() if report.ready)
        return self.behind([*scored, *shown])

    def behind(self, wanted: Iterable[str]) -> list[Job]:
        """The jobs that make these files, and all that they read; each once, after those that it reads."""
        jobs: dict[Job, None] = {}

        def add(path: str) -> None:
            job = self.at(path)
            if job is not None and job not in jobs:
                for read in job.inputs:
                    add(read)
                jobs.update(dict.fromkeys([*self.shards(job), job]))

        for path in wanted:
            add(path)
        return list(jobs)

    def shards(self, job: Job) -> list[Job]:
        """The jobs that translate the parts of a set, whose files the job of the set puts together; none if one job
        translates it."""
        folder, count = job.outputs[0].rpartition("/")[0], job.shards if job.rule == "translate" else 1
        return [self.at(f"{folder}/shards/{number}of{count}.jsonl") for number in range(count)] if count > 1 else []

    def at(self, path: str) -> Job | None:
        """The job that makes a file; None for a file that no rule makes."""
        if path not in self._jobs:
            job = self._made(tuple(os.path.relpath(path, self.root).split("/")))
            # Another file of the same job leads to the same object.
            self._jobs[path] = job and self._jobs.setdefault(job.outputs[0], job)
        return self._jobs[path]

    def made_from(self, read: Iterable[str]) -> dict[str, str]:
        """A digest of the params of each file that a rule makes, by its path."""
        jobs = {path: self.at(path) for path in dict.fromkeys(read)}
        return {path: params.digest(job.spec) for path, job in jobs.items() if job and job.spec}

    def _made(self, parts: tuple[str, ...]) -> Job | None:
        match parts:
            case ["corpus", direction, *rest]:
                return self._of_corpus(direction, rest)
            case ["datasets" | "checkpoints" | "backbones" | "comet", *_]:
                return self._of_download(parts)
            case ["tables" | "figures" as kind, name]:
                return self._of_report(kind, name)
            case ["pages", name]:
                direction, _, testset = name.removesuffix(".html").partition(".")
                read = pages.inputs(self.experiment, (direction, testset))
                spec = tables.spec(self.experiment)
                return Job(
                    "page", {"direction": direction, "testset": testset}, (self._path(*parts),), spec, tuple(read)
                )
            case ["report.tex" | "report.pdf" as name]:
                return self._document(name)
            case ["human_evaluation", direction, *rest]:
                return self._of_people(direction, rest)
            case [direction, backbone, "tokens", name]:
                testset = name.removesuffix(".jsonl")
                wildcards = {"direction": direction, "backbone": backbone, "testset": testset}
                spec = params.tokens(self.experiment, direction, backbone, testset)
                read = (self.testset(direction, testset), self.backbone(backbone))
                return Job("tokens", wildcards, (self._path(*parts),), spec, read)
            case [direction, backbone, run, *rest] if re.fullmatch(f"seed{RUN_NAME}", run) and rest:
                is_defined = direction in self.experiment.directions and backbone in self.experiment.backbones
                return self._of_run(Run.named(direction, backbone, run), rest) if is_defined else None
        return None

    # What many runs share.

    def _of_corpus(self, direction: str, rest: list[str]) -> Job | None:
        wildcards, train = {"direction": direction}, self.corpus(direction)
        folder = self._path("corpus", direction)
        match rest:
            case ["train.jsonl" | "dev.jsonl" | "corpus.json"]:
                outputs = tuple(f"{folder}/{name}" for name in ("train.jsonl", "dev.jsonl", "corpus.json"))
                read = self._dataset(self.experiment.directions[direction].train)
                return Job("corpus", wildcards, outputs, params.corpus(self.experiment, direction), read)
            case ["length_ratios.json"]:
                spec = params.length_ratios(self.experiment, direction)
                tokenizers = map(self.backbone, params.tokenizers(self.experiment, direction))
                return Job("length_ratios", wildcards, (f"{folder}/length_ratios.json",), spec, (train, *tokenizers))
            case ["test", name]:
                testset = name.removesuffix(".jsonl")
                copied = testset == DEV
                read = (f"{folder}/dev.jsonl",) if copied else self._dataset(testset)
                spec = params.any_testset(self.experiment, direction, testset)
                rule = "dev_as_testset" if copied else "testset"
                return Job(rule, {**wildcards, "testset": testset}, (self.testset(direction, testset),), spec, read)
            case ["overlap", name]:
                testset = name.removesuffix(".json")
                trained = (train,) if direction in params.trained(self.experiment) else ()
                read = (self.testset(direction, testset), *trained)
                spec = params.overlap(self.experiment, direction, testset)
                return Job("overlap", {**wildcards, "testset": testset}, (f"{folder}/overlap/{name}",), spec, read)
        return None

    def _of_download(self, parts: tuple[str, ...]) -> Job | None:
        match parts:
            case ["datasets", name]:
                dataset = name.removesuffix(".json")
                spec = params.dataset(self.experiment, dataset)
                return Job("fetch_dataset", {"dataset": dataset}, (self._path(*parts),), spec)
            case ["checkpoints", name]:
                checkpoint = name.removesuffix(".json")
                spec = params.comet(self.experiment, paths.downloaded_comets(self.experiment)[checkpoint])
                return Job("fetch_comet", {"checkpoint": checkpoint}, (self._path(*parts),), spec)
            case ["comet", "comet.json"]:
                read = tuple(self.corpus(name) for name in self.experiment.matrix.directions)
                return Job("train_comet", {}, (self._path(*parts),), params.comet_training(self.experiment), read)
            case ["backbones", name]:
                backbone = name.removesuffix(".json")
                spec = params.hub(self.experiment, backbone)
                return Job("fetch_backbone", {"backbone": backbone}, (self._path(*parts),), spec)
            case ["backbones", backbone, run, *_]:
                seed = run.removeprefix("seed")
                read = tuple(map(self.corpus, params.pretraining_directions(self.experiment, backbone)))
                spec = params.pretraining(self.experiment, backbone, int(seed))
                return Job("pretrain", {"backbone": backbone, "seed": seed}, (self._path(*parts),), spec, read)
        return None

    def _of_report(self, kind: str, file: str) -> Job | None:
        name = f"{kind}/{re.sub(r'(.float)?[.][a-z]+$', '', file)}"
        if name not in self.reports:
            return None
        report = self.reports[name]
        outputs = tuple(self._path(f"{name}.{ending}") for ending in sorted(report.endings, key="csv".__ne__))
        read, spec = tuple(report.inputs()), tables.spec(self.experiment)
        return Job(report.rule, {report.rule: name.partition("/")[2]}, outputs, spec, read)

    def _document(self, name: str) -> Job:
        """All tables and figures that wait for nobody as LaTeX, or as PDF."""
        ready = {path: report for path, report in self.reports.items() if report.ready}
        read, spec = tuple(map(self._path, document.read(ready))), tables.spec(self.experiment)
        rule, read = ("document", read) if name.endswith(".tex") else ("pdf", (self._path("report.tex"), *read))
        return Job(rule, {}, (self._path(name),), spec, read)

    def _of_people(self, direction: str, rest: list[str]) -> Job | None:
        wildcards, folder = {"direction": direction}, self._path("human_evaluation", direction)
        pack = (f"{folder}/pack.json", f"{folder}/private/mapping.json")
        match rest:
            case ["pack.json" | "guidelines.en.md" | "guidelines.zh.md"] | ["private", _]:
                read = tuple(params.pack_inputs(self.experiment, direction))
                spec = self._with_ancestry(params.pack(self.experiment, direction), read)
                guidelines = (f"{folder}/guidelines.en.md", f"{folder}/guidelines.zh.md")
                return Job("human_pack", wildcards, (*pack, *guidelines), spec, read)
            case ["ratings.jsonl"]:
                read = (*pack, *params.filled_forms(self.experiment, direction))
                spec = self._with_ancestry(params.ratings(self.experiment), pack)
                return Job("human_ratings", wildcards, (f"{folder}/ratings.jsonl",), spec, read)
            case ["simulated", name]:
                annotator = name.removesuffix(".csv").rpartition(".")[2]
                spec = self._with_ancestry(params.simulation(self.experiment), pack)
                wildcards = {**wildcards, "annotator": annotator}
                return Job("human_simulated", wildcards, (f"{folder}/simulated/{name}",), spec, pack[:1])
            case [annotator, _]:
                spec = self._with_ancestry({"revision": revisions.HUMAN_EVALUATION}, pack[:1])
                wildcards = {**wildcards, "annotator": annotator}
                return Job("human_forms", wildcards, ("/".join((folder, *rest)),), spec, pack[:1])
        return None

    def _with_ancestry(self, own: Mapping[str, Any], read: Iterable[str]) -> str:
        return files.canonical({**own, "made_from": self.made_from(read)})

    # What belongs to one run.

    def _of_run(self, run: Run, rest: list[str]) -> Job | None:
        wildcards = {"direction": run.direction, "backbone": run.backbone, "seed": run.name.removeprefix("seed")}
        folder = run.folder(self.root)
        match rest:
            case ["adapter", _]:
                rule = "adopt_adapter" if self.experiment.adapters == "released" else "train"
                read = (
                    self.backbone(run.backbone, run.seed),
                    *((self.corpus(run.direction),) if rule == "train" else ()),
                )
                spec = params.any_adapter(self.experiment, run)
                return Job(rule, wildcards, (f"{folder}/adapter/{FACTS}",), spec, read)
            case [name] if name == DIAGNOSTICS:
                testsets = {test for tests in self.sets.diagnostics(run).values() for test in tests}
                read, spec = self._model(run, sorted(testsets)), params.diagnostics(self.experiment, run)
                return Job("diagnose", wildcards, (f"{folder}/{DIAGNOSTICS}",), spec, read)
            case ["latency", testset, *system]:
                cell = Cell.named(run, testset, "/".join(system).removesuffix(".json"))
                spec = params.latency(self.experiment, cell)
                read = self._model(run, [testset], spec)
                wildcards |= {"testset": testset, "method": cell.method, "order": cell.order, "steps": str(cell.steps)}
                return Job("latency", wildcards, (cell.latency(self.root),), spec, read, (cell,))
            case [name, "shards", file]:
                job = self.at(f"{folder}/{name}/{TRANSLATIONS}")
                wildcards = {**job.wildcards, "shard": file.removesuffix(".jsonl")}
                return dataclasses.replace(
                    job, rule="shard", wildcards=wildcards, outputs=(f"{folder}/{name}/shards/{file}",)
                )
            case [name, file] if file.partition(".")[0] in (TRANSLATIONS.partition(".")[0], SCORES.partition(".")[0]):
                return self._of_set(self.sets.named(run, name), {**wildcards, "set": name}, file.partition(".")[0])
        return None

    def _of_set(self, one: CellSet, wildcards: Mapping[str, str], what: str) -> Job:
        outputs = tuple(f"{one.folder(self.root)}/{what}.{ending}" for ending in ("jsonl", "json"))
        if what == "scores":
            tests = (self.testset(one.run.direction, name) for name in one.testsets)
            read = (one.translations(self.root), *tests, *self.comet())
            return Job("score", wildcards, outputs, params.scores(self.experiment, one), read, one.cells)
        spec = params.translation(self.experiment, one)
        job = Job("translate", wildcards, outputs, spec, self._model(one.run, one.testsets, spec), one.cells)
        return dataclasses.replace(job, shards=limits.shards(self.experiment, job))

    def _model(self, run: Run, testsets: Iterable[str], spec: str = "{}") -> tuple[str, ...]:
        """What a job reads that runs a run's model on test sets; with fits in its ``spec`` also training pairs."""
        adapter = paths.adapter_folder(self.experiment, run)
        read = [f"{adapter}/{FACTS}"] if adapter else []
        read += [self.corpus(run.direction)] if "fits" in json.loads(spec) else []
        return (*read, self.backbone(run.backbone, run.seed), *(self.testset(run.direction, name) for name in testsets))

    # Where things are.

    def corpus(self, direction: str) -> str:
        return self._path("corpus", direction, "train.jsonl")

    def testset(self, direction: str, name: str) -> str:
        return self._path("corpus", direction, "test", f"{name}.jsonl")

    def backbone(self, name: str, seed: int | None = None) -> str:
        """The file that stands for the checkpoint of a backbone's run; variants share it."""
        if self.experiment.backbones[name].is_pretrained_here:
            return f"{paths.backbone_folder(self.experiment, name, seed)}/{MANIFEST}"
        return self._path("backbones", f"{paths.checkpoint_of(self.experiment, name)}.json")

    def comet(self) -> tuple[str, ...]:
        """The files that stand for the metrics' checkpoints."""
        trained = (self._path("comet", "comet.json"),) if self.experiment.scoring.comet.training else ()
        downloaded = paths.downloaded_comets(self.experiment)
        return (*trained, *(self._path("checkpoints", f"{name}.json") for name in downloaded))

    def _dataset(self, source: str) -> tuple[str, ...]:
        name = paths.dataset_of(self.experiment, source)
        return (self._path("datasets", f"{name}.json"),) if name else ()

    def _path(self, *parts: str) -> str:
        return "/".join((self.root, *parts))
