"""How much work jobs do: floating-point operations, counted from their params and the lengths of their texts; and into
how many shards the translation of a set is divided."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from entropy_valley.decoding.canvas import CachePolicy
from entropy_valley.experiment.checking import subject
from entropy_valley.experiment.checking.size import Size
from entropy_valley.experiment.config import Experiment, params
from entropy_valley.experiment.config.matrix import DEV, Cell, CellSet
from entropy_valley.experiment.config.methods import base_method, source_guided
from entropy_valley.experiment.runs.jobs import Job
from entropy_valley.lengths import find_method
from entropy_valley.lengths.base import declared
from entropy_valley.model.prompt import PREFIX, attention_of

LARGE = Size(4096, 12288, 32, 126464, 32, 32, 128)  # LLaDA-8B's; for a checkpoint whose shape is not known yet
# Operations a second on a GPU, where no job of a kind has finished: with this the whole matrix of config.yaml takes the
# paper's hours. A test computes it again.
GPU = 4.34e13
SHARD = 140 * 60  # seconds that a shard takes at this speed, at most
COMET, TOY = 0.58e9, 0.5e6  # parameters of COMET-22, as which every downloaded one counts, and of the toy COMET
PROBES, BIAS = 6, 12  # lengths that a searching method tries; lengths at which the length statistics probe a pair
# Bytes of UTF-8 of a token; lines of a file that are measured; tokens of a source of WMT19, WMT22 and the demo.
TOKEN, READ, TRAIN, TEST, GRAMMAR = 4, 2000, 30.0, 20.0, 10.0


def kind_of(job: Job) -> str:
    """Jobs of a kind do as much work a second: a rule; autoregressive translations are a kind of their own. A shard is
    translated as a set is."""
    rule = "translate" if job.rule == "shard" else job.rule
    return "generate" if rule == "translate" and job.cells and not job.cells[0].order else rule


@dataclass(frozen=True)
class Text:
    """A corpus or test set: its sentences, and the mean tokens of a source and of a translation."""

    sentences: int
    source: float
    target: float

    @classmethod
    def read(cls, path: Path) -> Text | None:
        """The text of a file: all its lines are counted, the first of them measured. None for a file without pairs."""
        with open(path, "rb") as file:
            first = list(itertools.islice(file, READ))
            count = len(first) + sum(1 for _ in file)
        try:
            pairs = [json.loads(line) for line in first]
            source, target = (
                fmean(len(pair[side].encode()) / TOKEN for pair in pairs) for side in ("source", "target")
            )
        except (ValueError, LookupError, TypeError):
            return None
        return cls(count, source, target)


class Work:
    """Counts floating-point operations. ``texts`` stand for the files of the corpora, by direction and ``train`` or the
    name of a test set. ``expected``: what the config says, whatever files exist by now."""

    def __init__(
        self, experiment: Experiment, texts: Mapping[tuple[str, str], Text] | None = None, expected: bool = False
    ) -> None:
        self.experiment, self._texts, self._expected = experiment, texts, expected
        self.size = functools.cache(lambda backbone: subject.size(experiment, backbone, expected) or LARGE)
        self.text = functools.cache(self._text)
        self._counted: set[Any] = set()

    def of(self, jobs: Collection[Job], new: Mapping[Job, Sequence[Cell]] = {}) -> dict[Job, float]:
        """The operations of each job, in this order: what one set has computed costs the next nothing. 1 for a job that
        runs no model. ``new`` has the cells of a set that are computed; else it is all."""
        self._counted.clear()
        self._new = new
        kinds = {"pretrain", "train", "translate", "generate", "diagnose", "score"}
        counted: dict[Any, float] = {}
        for job in jobs:
            shard = job.wildcards.get("shard")
            key = tuple(sorted({**job.wildcards, "shard": ""}.items())) if shard else job  # the set of a shard
            if key not in counted:
                kind = kind_of(job)
                counted[key] = getattr(self, f"_{kind}")(job, self._spec(job)) if kind in kinds else 1.0
            counted[job] = counted[key] / int(shard.partition("of")[2]) if shard else counted[key]
        return {job: counted[job] for job in jobs}

    def _spec(self, job: Job) -> dict[str, Any]:
        """What its work follows from."""
        if "set" in job.wildcards and job.rule != "score":
            return params.translating(self.experiment, params.set_of(self.experiment, job.wildcards))
        return json.loads(job.spec)

    def _cells(self, job: Job) -> Sequence[Cell]:
        return self._new.get(job, job.cells)

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
        padding, pair = settings["loss"].get("eos_padding", 0), text.source + text.target
        padding = pair if padding == "batch" else padding  # the longest pair of a micro-batch has about twice the mean
        masked = (text.target + padding) / 2
        return self.size(job.wildcards["backbone"]).step_work(pairs * (pair + padding), pairs * masked, False)

    def _generate(self, job: Job, spec: dict[str, Any]) -> float:
        """Beam search of the autoregressive baseline."""
        beams, size, total = spec["beams"], self.size(job.wildcards["backbone"]), 0.0
        for text in (self.text(cell.run.direction, cell.testset) for cell in self._cells(job)):
            total += text.sentences * size.pass_work(text.source + beams * text.target, beams * text.target)
        return total

    def _translate(self, job: Job, spec: dict[str, Any]) -> float:
        backbone, total = job.wildcards["backbone"], 0.0
        train = self.text(job.wildcards["direction"], "train")
        for name, fit in spec.get("fits", {}).items():
            if self._cells(job) and self._is_new(job.cells[0].run, name):
                total += self._fit_probes(name, fit) * self._probing(backbone, spec, train, 1)
        for cell in self._cells(job):
            text, settings = self.text(cell.run.direction, cell.testset), spec["methods"][cell.method]
            for method in filter(None, (cell.method, settings.get("of"))):  # a reassignment needs another's canvases
                if self._is_new(cell.run, cell.testset, method):
                    probes = self.probes(method, spec["methods"][method])
                    total += text.sentences * self._probing(backbone, spec, text, probes)
            if self._is_new(cell):
                canvases = settings.get("k") or settings.get("beam") or 2 * settings.get("radius", 0) + 1
                total += text.sentences * canvases * self._filling(cell, spec, text)
        return total

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
        scoring, tokens = self.experiment.scoring, 0.0
        for cell in self._cells(job):
            if self._is_new("score", cell):
                text = self.text(cell.run.direction, cell.testset)
                tokens += text.sentences * (text.source + 2 * text.target)
        parameters = TOY if scoring.trains_comet else COMET if scoring.comet else 0
        return 2 * parameters * tokens

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

    def _fit_probes(self, name: str, fit: Mapping[str, Any]) -> float:
        """The passes over training or development pairs by which length methods are fitted."""
        match name:
            case "length_statistics":
                return BIAS * fit.get("bias_pairs", 0)
            case "learned":
                methods = fit["methods"].items()
                return sum(settings.get("pairs", 0) * self.probes(method, settings) for method, settings in methods)
        return fit["training"]["pairs"]

    def probes(self, method: str, settings: Mapping[str, Any]) -> float:
        """The passes by which a length method chooses a canvas."""
        name = base_method(self.experiment, method)
        kind = None if name == "reassigned" else find_method(name, {})
        if kind is None or not declared(kind, "probes"):
            return 0
        ratios, drafts = settings.get("ratios"), declared(kind, "draft_steps")
        tried = len(ratios) if isinstance(ratios, list) else settings.get("candidates", PROBES)
        return tried * (1 + (drafts if isinstance(drafts, int) else settings.get("steps", 0)))

    def _text(self, direction: str, name: str) -> Text:
        """That of the file, if it exists; else what is usual."""
        if self._texts is not None:
            return self._texts[direction, name]
        folder = Path(self.experiment.results, "corpus", direction)
        path = folder / "train.jsonl" if name == "train" else folder / "test" / f"{name}.jsonl"
        if not self._expected and path.is_file() and (text := Text.read(path)):
            return text
        drawn = name in ("train", DEV)
        source = self.experiment.sources[self.experiment.directions[direction].train if drawn else name]
        tokens = GRAMMAR if source.endless else TRAIN if drawn else TEST
        ratios = getattr(self.experiment.length_methods, "ratio", None)
        ratio = ratios.ratios.get(direction, 1.0) if ratios and isinstance(ratios.ratios, dict) else 1.0
        pairs = self.experiment.corpus_of(direction).train
        sentences = pairs if name == "train" else params.sentences(self.experiment, direction, name)
        return Text(sentences, tokens, ratio * tokens)


@functools.cache
def shards(experiment: Experiment, one: CellSet) -> int:
    """Into how many shards the translation of a set is divided. It follows from the config, and from the shape of
    checkpoints in folders of the user's own, whatever is measured or downloaded by now: with another number, Snakemake
    repeats what is finished."""
    if experiment.decoding.shards != "auto":
        return experiment.decoding.shards
    if experiment.device != "cuda":
        return 1
    run = one.run
    wildcards = {"direction": run.direction, "backbone": run.backbone, "seed": run.name.removeprefix("seed")}
    job = Job(experiment, "translate", wildcards | {"set": one.name}, params.translation(experiment, one))
    return max(1, math.ceil(_expected_work(experiment).of([job])[job] / GPU / SHARD))


@functools.cache
def _expected_work(experiment: Experiment) -> Work:
    return Work(experiment, expected=True)


def _prompted(spec: Mapping[str, Any], passes: float) -> float:
    """How many of the passes over a sentence compute its prompt."""
    if attention_of(spec) == PREFIX:
        return min(1, passes)
    refresh = CachePolicy.of(spec).refresh
    return passes if refresh is None else math.ceil(passes / refresh)
