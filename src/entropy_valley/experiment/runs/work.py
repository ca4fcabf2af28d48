"""How much work jobs do: floating-point operations, counted from their params and the number of sentences; and into how
many shards the translation of a set is divided.

Diagnostics and autoregressive translations, less than a hundredth of the whole matrix, are not counted. A prompt counts
in every pass, also where it is kept.
"""

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from entropy_valley.experiment.checking import subject
from entropy_valley.experiment.checking.size import Size
from entropy_valley.experiment.config import Experiment, params
from entropy_valley.experiment.config.matrix import DEV, Cell, CellSet
from entropy_valley.experiment.config.methods import declares, source_guided
from entropy_valley.experiment.runs.jobs import Job

LARGE = Size(4096, 12288, 32, 126464, 32, 32, 128)  # LLaDA-8B's; for a checkpoint whose shape is not known yet
# Operations a second on a GPU, where no job of a kind has finished: with this the whole matrix of config.yaml takes the
# paper's hours. A test computes it again.
GPU = 4.34e13
SHARD = 140 * 60  # seconds that a shard takes at this speed, at most
COMET, TOY = 0.58e9, 0.5e6  # parameters of COMET-22, as which every downloaded one counts, and of the toy COMET
PROBES, BIAS = 6, 12  # lengths that a searching method tries; lengths at which the length statistics probe a pair
# Bytes of UTF-8 of a token of a prompt; tokens of a source of WMT19, WMT22 and the demo.
TOKEN, TRAIN, TEST, GRAMMAR = 4, 30.0, 20.0, 10.0


def kind_of(job: Job) -> str:
    """Jobs of a kind do as much work a second: a rule; autoregressive translations are a kind of their own. A shard is
    translated as a set is."""
    rule = "translate" if job.rule == "shard" else job.rule
    return "generate" if rule == "translate" and job.cells and not job.cells[0].order else rule


class Text(NamedTuple):
    """A corpus or test set: its sentences, and the mean tokens of a source and of a translation."""

    sentences: int
    source: float
    target: float


class Work:
    """Counts floating-point operations. ``expected``: what the config says, whatever files exist by now."""

    def __init__(self, experiment: Experiment, expected: bool = False) -> None:
        self.experiment, self._expected = experiment, expected
        self.size = functools.cache(lambda backbone: subject.size(experiment, backbone, expected) or LARGE)
        self.text = functools.cache(self._text)
        self._counted: set[Any] = set()

    def of(self, jobs: Collection[Job], new: Mapping[Job, Sequence[Cell]] = {}) -> dict[Job, float]:
        """The operations of each job, in this order: what one set has computed costs the next nothing. 1 for a job that
        is not counted. ``new`` has the cells of a set that are computed; else it is all."""
        self._counted.clear()
        self._new = new
        count = {"pretrain": self._pretrain, "train": self._train, "translate": self._translate, "score": self._score}
        counted: dict[Any, float] = {}
        for job in jobs:
            shard = job.wildcards.get("shard")
            key = tuple(sorted({**job.wildcards, "shard": ""}.items())) if shard else job  # the set of a shard
            if key not in counted:
                kind = kind_of(job)
                counted[key] = count[kind](job) if kind in count else 1.0
            counted[job] = counted[key] / int(shard.partition("of")[2]) if shard else counted[key]
        return {job: counted[job] for job in jobs}

    def _cells(self, job: Job) -> Sequence[Cell]:
        return self._new.get(job, job.cells)

    def _is_new(self, *key: Any) -> bool:
        new = key not in self._counted or not self.experiment.store
        self._counted.add(key)
        return new

    def _pretrain(self, job: Job) -> float:
        settings = job.params["pretraining"]
        texts = [self.text(direction, "train") for direction in job.params["prompts"]]
        tokens = settings["steps"] * settings["batch"] * fmean(text.source + text.target for text in texts)
        return 3 * self.size(job.wildcards["backbone"]).pass_work(tokens, tokens / 2)  # forward, and backward twice

    def _train(self, job: Job) -> float:
        settings, text = job.params["training"], self.text(job.wildcards["direction"], "train")
        per_epoch = min(text.sentences, settings.get("limit") or text.sentences) / settings["global_batch"]
        pairs = settings["global_batch"] * (settings.get("max_steps") or settings["epochs"] * per_epoch)
        padding, pair = settings["loss"].get("eos_padding", 0), text.source + text.target
        padding = pair if padding == "batch" else padding  # the longest pair of a micro-batch has about twice the mean
        masked = (text.target + padding) / 2
        # The frozen weights take part in the forward pass and in the gradient of its input.
        return 2 * self.size(job.wildcards["backbone"]).pass_work(pairs * (pair + padding), pairs * masked)

    def _translate(self, job: Job) -> float:
        return self.translation(params.set_of(self.experiment, job.wildcards), self._cells(job))

    def translation(self, whole: CellSet, cells: Sequence[Cell]) -> float:
        """The operations of translating some cells of a set."""
        spec, backbone, total = params.translating(self.experiment, whole), whole.run.backbone, 0.0
        train = self.text(whole.run.direction, "train")
        for name, fit in spec.get("fits", {}).items():
            if cells and self._is_new(whole.run, name):
                total += self._fit_probes(name, fit) * self._probing(backbone, spec, train, 1)
        for cell in cells:
            text, settings = self.text(cell.run.direction, cell.testset), spec["methods"][cell.method]
            for method in filter(None, (cell.method, settings.get("of"))):  # a reassignment needs another's canvases
                if self._is_new(cell.run, cell.testset, method):
                    probes = self.probes(method, spec["methods"][method])
                    total += text.sentences * self._probing(backbone, spec, text, probes)
            if self._is_new(cell):
                canvases = settings.get("k") or settings.get("beam") or 2 * settings.get("radius", 0) + 1
                total += text.sentences * canvases * self._filling(cell, spec, text)
        return total

    def _score(self, job: Job) -> float:
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
        tokens = steps * (len(spec["prompt"]) / TOKEN + text.source + slots)
        passes = 2 if source_guided(self.experiment, cell.order) else 1
        return passes * self.size(cell.run.backbone).pass_work(tokens, slots * (steps + 1) / 2)

    def _probing(self, backbone: str, spec: dict[str, Any], text: Text, probes: float) -> float:
        """So many passes over all-mask canvases of a sentence."""
        tokens = probes * (len(spec["prompt"]) / TOKEN + text.source + text.target)
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
        if not declares(self.experiment, method, "probes"):
            return 0
        ratios, drafts = settings.get("ratios"), declares(self.experiment, method, "draft_steps")
        tried = len(ratios) if isinstance(ratios, list) else settings.get("candidates", PROBES)
        return tried * (1 + (drafts if isinstance(drafts, int) else settings.get("steps", 0)))

    def _text(self, direction: str, name: str) -> Text:
        """Its sentences by its file, if that exists, else by the config, with as many tokens as is usual."""
        drawn = name in ("train", DEV)
        source = self.experiment.sources[self.experiment.directions[direction].train if drawn else name]
        tokens = GRAMMAR if source.endless else TRAIN if drawn else TEST
        ratios = getattr(self.experiment.length_methods, "ratio", None)
        ratio = ratios.ratios.get(direction, 1.0) if ratios and isinstance(ratios.ratios, dict) else 1.0
        pairs = self.experiment.corpus_of(direction).train
        sentences = pairs if name == "train" else params.sentences(self.experiment, direction, name)
        folder = Path(self.experiment.results, "corpus", direction)
        path = folder / "train.jsonl" if name == "train" else folder / "test" / f"{name}.jsonl"
        if not self._expected and path.is_file():
            with open(path, "rb") as file:
                sentences = sum(1 for _ in file)
        return Text(sentences, tokens, ratio * tokens)


@functools.cache
def shards(experiment: Experiment, one: CellSet) -> int:
    """Into how many shards the translation of a set is divided. It follows from the config, and from the shape of
    checkpoints in folders of the user's own, whatever is measured or downloaded by now: with another number, Snakemake
    repeats what is finished."""
    if experiment.decoding.shards != "auto":
        return experiment.decoding.shards
    if experiment.device != "cuda" or one.autoregressive:
        return 1
    run = dataclasses.replace(one.run, seed=1)  # all seeds take as long, and a matrix may have hundreds
    cells = tuple(dataclasses.replace(cell, run=run) for cell in one.cells)
    return max(1, math.ceil(_expected_work(experiment, CellSet(run, one.name, cells)) / GPU / SHARD))


@functools.cache
def _expected_work(experiment: Experiment, one: CellSet) -> float:
    return Work(experiment, expected=True).translation(one, one.cells)
