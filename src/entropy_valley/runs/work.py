"""The work of jobs: floating-point operations, counted from the config and the lengths of the texts.

Only the products of the weights count (:class:`checking.sizes.Size`): tokens of prompt and canvas × passes for
decoding, tokens of the pairs × updates for training. How many of them a device does in a second is measured: see
:mod:`entropy_valley.runs.plan`.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from entropy_valley.checking import subject
from entropy_valley.checking.sizes import BYTES, Size
from entropy_valley.decoding.job import refresh_of
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.matrix import DEV, Cell
from entropy_valley.experiment.params import corpora
from entropy_valley.experiment.params.methods import selector_name, source_guided
from entropy_valley.experiment.paths import comet_folder
from entropy_valley.lengths import find_method
from entropy_valley.model.attention import PREFIX, attention_of
from entropy_valley.runs.inventory import Job
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT

RUN_A_MODEL = ("pretrain", "train", "translate", "diagnose", "latency", "score")  # rules
LARGE = Size(4096, 12288, 32, 126464, 32, 32)  # LLaDA-8B's; for a checkpoint whose shape is not known yet
COMET, TOY = 0.58e9, 0.5e6  # parameters of COMET-22 and of the toy COMET, before their files exist
# The lengths that methods choose for a sentence are close to each other. That of a method is one of so many, by the
# slots of the reference. Fitted to the demo, whose store counts how many canvases are different.
SPREAD = 0.65
LENGTHS_OF_BIAS = 12  # at which the length statistics probe a pair
PROBES = 6  # of a method that searches, where its settings do not say how many lengths it tries
TOKEN = 4  # bytes of UTF-8: English, German and Chinese differ little
READ = 2000  # lines of a file whose lengths are measured
USUAL = {"train": 30.0, "test": 20.0}  # tokens of a source sentence of WMT19, and of WMT22
GRAMMAR = 10.0  # of the demo's


@dataclass(frozen=True)
class Text:
    """A corpus or test set: its sentences, and the mean tokens of a source and of a translation."""

    sentences: int
    source: float
    target: float

    @property
    def whole(self) -> float:
        """Tokens of a pair."""
        return self.source + self.target


class Store:
    """What the jobs before have computed: equal work is done once."""

    def __init__(self) -> None:
        self._done: set[Hashable] = set()
        self._drawn: Counter[Hashable] = Counter()

    def is_new(self, key: Hashable) -> bool:
        """Whether this is the first job with that work."""
        new = key not in self._done
        self._done.add(key)
        return new

    def different(self, key: Hashable, count: float, text: Text) -> float:
        """How many of ``count`` further lengths of a sentence nobody has chosen before."""
        among = max(1.0, SPREAD * text.target)
        missed = (1 - 1 / among) ** self._drawn[key]  # the share of these lengths that is still new
        self._drawn[key] += count
        return among * (missed - (1 - 1 / among) ** self._drawn[key])


class Work:
    """The work of a config's jobs. ``texts`` stand for the files of the corpora, by direction and ``train`` or the name
    of a test set."""

    def __init__(self, experiment: Experiment, texts: Mapping[tuple[str, str], Text] | None = None) -> None:
        self.experiment, self._texts = experiment, texts
        self.size = functools.cache(lambda backbone: subject.size(experiment, backbone) or LARGE)
        self.text = functools.cache(self._text)

    def of(self, jobs: Iterable[Job]) -> dict[Job, float]:
        """The operations of each job, done in this order: sets of a run share a store, so what one has computed costs
        the next nothing. 1 for a job that runs no model, whose time depends on little."""
        store, found = Store(), {}
        for job in jobs:
            store = store if self.experiment.store else Store()
            counted = job.rule in RUN_A_MODEL
            found[job] = getattr(self, f"_{job.rule}")(job, json.loads(job.spec), store) if counted else 1.0
        return found

    # Training.

    def _pretrain(self, job: Job, spec: dict[str, Any], store: Store) -> float:
        settings, texts = spec["pretraining"], [self.text(direction, "train") for direction in spec["prompts"]]
        tokens = settings["steps"] * settings["batch"] * fmean(text.whole for text in texts)
        return 3 * self.size(job.wildcards["backbone"]).pass_work(tokens, tokens / 2)  # forward, and backward twice

    def _train(self, job: Job, spec: dict[str, Any], store: Store) -> float:
        settings, text = spec["training"], self.text(job.wildcards["direction"], "train")
        per_epoch = min(text.sentences, settings.get("limit") or text.sentences) / settings["global_batch"]
        pairs = settings["global_batch"] * (settings.get("max_steps") or settings["epochs"] * per_epoch)
        tokens = text.whole + settings["loss"].get("eos_padding", 0) / 2
        return self.size(job.wildcards["backbone"]).step_work(pairs * tokens, pairs * text.target / 2, False)

    # Decoding.

    def _translate(self, job: Job, spec: dict[str, Any], store: Store) -> float:
        if not job.cells[0].order:
            return sum(self._generation(cell, spec) for cell in job.cells)
        fits = spec.get("fits", {}).items()
        fitted = sum(self._fit(job, spec, name, fit) for name, fit in fits if store.is_new((job.cells[0].run, name)))
        return fitted + sum(self._canvas(cell, spec, store) + self._decoding(cell, spec, store) for cell in job.cells)

    def _generation(self, cell: Cell, spec: dict[str, Any]) -> float:
        text, beams = self.text(cell.run.direction, cell.testset), spec["beams"]
        tokens = text.source + beams * text.target
        return text.sentences * self.size(cell.run.backbone).pass_work(tokens, beams * text.target)

    def _fit(self, job: Job, spec: dict[str, Any], name: str, fit: dict[str, Any]) -> float:
        text = self.text(job.wildcards["direction"], "train")
        if name == "length_statistics":
            return (fit["pairs"] + LENGTHS_OF_BIAS * fit["bias_pairs"]) * self._probe(job, spec, text)
        pairs = min(text.sentences, fit["training"]["pairs"])
        return pairs * self.size(job.wildcards["backbone"]).pass_work(text.source, 1)

    def _canvas(self, cell: Cell, spec: dict[str, Any], store: Store) -> float:
        """The probes of a cell's length method, and of the one whose canvases it reassigns."""
        text, total = self.text(cell.run.direction, cell.testset), 0.0
        for method in filter(None, (cell.method, spec["methods"][cell.method].get("of"))):
            if store.is_new((cell.run, cell.testset, method)):
                probes = self.probes(method, spec["methods"][method])
                different = store.different((cell.run, cell.testset), probes, text)
                total += text.sentences * different * self._probe_of(cell.run.backbone, spec, text, probes)
        return total

    def _decoding(self, cell: Cell, spec: dict[str, Any], store: Store) -> float:
        """The canvases of a cell that no cell before has decoded."""
        if not store.is_new(cell):
            return 0.0
        text, settings = self.text(cell.run.direction, cell.testset), spec["methods"][cell.method]
        contenders = settings.get("k") or settings.get("beam") or 2 * settings.get("radius", 0) + 1
        different = store.different((cell.run, cell.testset, cell.order, cell.steps), contenders, text)
        return text.sentences * different * self._filling(cell, spec, text)

    def _filling(self, cell: Cell, spec: dict[str, Any], text: Text) -> float:
        """One canvas: a pass for each step that reveals something, twice where the order looks at the SIG."""
        slots = text.target + 1
        steps = min(float(cell.steps), slots)
        twice = 2 if source_guided(self.experiment, cell.order) else 1
        tokens = _prompted(spec, steps) * (_prompt(spec) + text.source) + steps * slots
        return twice * self.size(cell.run.backbone).pass_work(tokens, slots * (steps + 1) / 2)

    def _latency(self, job: Job, spec: dict[str, Any], store: Store) -> float:
        (cell,), rounds = job.cells, 2 * (spec["repeats"] + 1)  # alone, and batched
        text, probes = self.text(cell.run.direction, cell.testset), self.probes(cell.method, spec["selector"])
        probing = probes * self._probe_of(cell.run.backbone, spec, text, probes)
        return rounds * spec["sentences"] * (self._filling(cell, spec, text) + probing)

    def _diagnose(self, job: Job, spec: dict[str, Any], store: Store) -> float:
        total = 0.0
        for kind, testset in ((kind, name) for kind, names in spec["testsets"].items() for name in names):
            text = self.text(job.wildcards["direction"], testset)
            passes = 2 * text.sentences  # with and without the source
            if kind == "valley":
                lengths = 2 * spec[kind]["offset"] + 1 + len(spec[kind]["ratios"])
                passes = lengths * min(text.sentences, spec[kind]["sentences"])
            total += passes * self._probe(job, spec, text)
        return total

    def _probe(self, job: Job, spec: dict[str, Any], text: Text) -> float:
        return self._probe_of(job.wildcards["backbone"], spec, text, 1)

    def _probe_of(self, backbone: str, spec: dict[str, Any], text: Text, probes: float) -> float:
        """One pass over an all-mask canvas; where few compute its prompt, the mean of a sentence's ``probes``."""
        share = _prompted(spec, probes) / probes if probes else 1
        tokens = share * (_prompt(spec) + text.source) + text.target
        return self.size(backbone).pass_work(tokens, text.target)

    def probes(self, method: str, settings: Mapping[str, Any]) -> float:
        """The passes by which a canvas is chosen."""
        name = selector_name(self.experiment, method)
        kind = None if name == "reassigned" else find_method(name, {})
        if kind is None or not getattr(kind, "probes", True):
            return 0
        ratios, drafts = settings.get("ratios"), getattr(kind, "draft_steps", 0)
        tried = len(ratios) if isinstance(ratios, list) else settings.get("candidates", PROBES)
        return tried * (1 + (drafts if isinstance(drafts, int) else settings.get("steps", 0)))

    # Scoring.

    def _score(self, job: Job, spec: dict[str, Any], store: Store) -> float:
        """COMET reads each different translation, with its source and its reference."""
        total = 0.0
        for cell in job.cells:
            text = self.text(cell.run.direction, cell.testset)
            if store.is_new(("scored", cell)):
                different = store.different(("scored", cell.run, cell.testset, cell.order, cell.steps), 1, text)
                total += text.sentences * different * (text.whole + text.target)
        return 2 * self._comet * total

    @functools.cached_property
    def _comet(self) -> float:
        """Parameters of the main COMET: those of its file, if it exists."""
        path = Path(comet_folder(self.experiment))
        path = path / CHECKPOINT if path.is_dir() else path
        if path.is_file():
            return path.stat().st_size / BYTES["float32"]
        return TOY if self.experiment.scoring.comet.training else COMET

    # Texts.

    def _text(self, direction: str, name: str) -> Text:
        """That of the file, if it exists; else what is usual."""
        if self._texts is not None:
            return self._texts[direction, name]
        folder = Path(self.experiment.results, "corpus", direction)
        path = folder / "train.jsonl" if name == "train" else folder / "test" / f"{name}.jsonl"
        return (_measured(path) if path.is_file() else None) or self._usual(direction, name)

    def _usual(self, direction: str, name: str) -> Text:
        corpus, drawn = self.experiment.corpus_of(direction), name in ("train", DEV)
        source = self.experiment.sources[self.experiment.directions[direction].train if drawn else name]
        tokens = GRAMMAR if source.endless else USUAL["train" if drawn else "test"]
        ratios = getattr(self.experiment.length_methods, "ratio", None)
        ratio = ratios.ratios.get(direction, 1.0) if ratios and isinstance(ratios.ratios, dict) else 1.0
        sentences = corpus.train if name == "train" else corpora.sentences(self.experiment, direction, name)
        return Text(sentences, tokens, ratio * tokens)


def _measured(path: Path) -> Text | None:
    """The text of a file: all its lines are counted, and the first of them measured. None for one without pairs, or a
    damaged one: the audit says so."""
    with open(path, "rb") as file:
        first = list(itertools.islice(file, READ))
        count = len(first) + sum(1 for _ in file)
    try:
        pairs = [(pair["source"], pair["target"]) for pair in map(json.loads, first)]
        lengths = [fmean(len(text.encode()) / TOKEN for text in side) for side in zip(*pairs, strict=True)]
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return Text(count, *lengths) if lengths else None


def _prompted(spec: Mapping[str, Any], passes: float) -> float:
    """How many of the passes over a sentence compute its prompt."""
    if attention_of(spec) == PREFIX:
        return min(1, passes)
    refresh = refresh_of(spec)
    return passes if refresh is None else math.ceil(passes / refresh)


def _prompt(spec: Mapping[str, Any]) -> float:
    """The tokens that a prompt puts around the source."""
    return len(spec["prompt"].encode()) / TOKEN
