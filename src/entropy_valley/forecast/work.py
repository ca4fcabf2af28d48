"""The work of jobs: floating-point operations, counted from the config and the lengths of the texts.

What is counted is the products of the weights (:class:`checking.sizes.Size`): tokens of prompt and canvas × passes for
decoding, tokens of the pairs × updates for training. How many of them a device does in a second is measured: see
:mod:`forecast.rates`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from entropy_valley.backbone.prompt_attention import PREFIX, attention_of
from entropy_valley.canvas.length_methods import find_method
from entropy_valley.checking import subject
from entropy_valley.checking.sizes import BYTES, Size
from entropy_valley.decoding.prompt_cache import refresh_of
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.params.methods import selector_name, source_guided
from entropy_valley.experiment.paths import comet_folder
from entropy_valley.experiment.result import Result
from entropy_valley.forecast.texts import TOKEN, Text, Texts
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT

LARGE = Size(4096, 12288, 32, 126464, 32, 32)  # LLaDA-8B's; for a checkpoint whose shape is not known yet
COMET, TOY = 0.58e9, 0.5e6  # parameters of COMET-22 and of the toy COMET, before their files are there
# The lengths that methods choose for a sentence are close to each other. That of a method is one of so many, by the
# slots of the reference. Fitted to the demo, whose store counts how many canvases are different.
SPREAD = 0.65
LENGTHS_OF_BIAS = 12  # at which length_statistics probes a pair
PROBES = 6  # of a method that searches, where its settings do not say how many lengths it tries


class Work:
    """The work of the jobs of a config."""

    def __init__(self, experiment: Experiment, texts: Texts | None = None) -> None:
        self.experiment, self.texts = experiment, texts or Texts(experiment)
        self.size = functools.cache(lambda backbone: subject.size(experiment, backbone) or LARGE)

    def of(self, job: Result) -> float:
        """The work of a job that runs a model; 1 for any other, whose time depends on little."""
        return getattr(self, f"_{job.rule}", lambda job: 1.0)(job)

    def _pretrain(self, job: Result) -> float:
        settings, directions = job.spec["pretraining"], job.spec["prompts"]
        texts = [self._text(job, "train", direction) for direction in directions]
        tokens = sum(map(_whole, texts)) / len(texts)
        size = self.size(job.wildcards["backbone"])
        pairs = settings["steps"] * settings["batch"]
        return 3 * size.pass_work(pairs * tokens, pairs * tokens / 2)  # forward, and backward for weights and inputs

    def _train(self, job: Result) -> float:
        settings, text = job.spec["training"], self._text(job, "train")
        per_epoch = min(text.sentences, settings.get("limit") or text.sentences) / settings["global_batch"]
        pairs = settings["global_batch"] * (settings.get("max_steps") or settings["epochs"] * per_epoch)
        tokens = _whole(text) + settings["loss"].get("eos_padding", 0) / 2
        return self.size(job.wildcards["backbone"]).step_work(pairs * tokens, pairs * text.target / 2, False)

    def _generate(self, job: Result) -> float:
        text, beams = self._text(job, job.wildcards["testset"]), int(job.wildcards["beams"])
        tokens = text.source + beams * text.target
        return text.sentences * self.size(job.wildcards["backbone"]).pass_work(tokens, beams * text.target)

    def _latency(self, job: Result) -> float:
        text, rounds = self._text(job, job.wildcards["testset"]), 2 * (job.spec["repeats"] + 1)  # alone, and batched
        one = self._decoding(job, text) + self._probe(job, text) * self.probes(job)
        return rounds * job.spec["sentences"] * one

    def _length_statistics(self, job: Result) -> float:
        text = self._text(job, "train")
        probed = job.spec["pairs"] + LENGTHS_OF_BIAS * job.spec["bias_pairs"]
        return probed * self._probe(job, text)

    def _length_head(self, job: Result) -> float:
        text = self._text(job, "train")
        pairs = min(text.sentences, job.spec["training"]["pairs"])
        return pairs * self.size(job.wildcards["backbone"]).pass_work(text.source, 1)

    def _valley(self, job: Result) -> float:
        text, lengths = self._text(job, job.wildcards["testset"]), 2 * job.spec["offset"] + 1 + len(job.spec["ratios"])
        return min(text.sentences, job.spec["sentences"]) * lengths * self._probe(job, text)

    def _sig_concentration(self, job: Result) -> float:
        text = self._text(job, job.wildcards["testset"])
        return 2 * text.sentences * self._probe(job, text)

    def of_store(self, jobs: Iterable[Result]) -> float:
        """The work behind the canvases and translations of one run. Methods that choose the same length for a sentence
        share its probe and its translation, so the whole is less than the sum."""
        groups: dict[Any, tuple[Result, float]] = {}
        for job in jobs:
            if job.rule == "decode":
                canvas = next(need for need in job.needs if need.rule.endswith("canvas"))
                key = (job.wildcards["testset"], job.wildcards["order"], job.wildcards["steps"])
                self._draw(groups, (self._decoding, *key), job, self.contenders(canvas))
            elif job.rule == "canvas":
                self._draw(groups, (self._probe, job.wildcards["testset"]), job, self.probes(job))
        return sum(self._shared(key[0], *drawn) for key, drawn in groups.items())

    @staticmethod
    def _draw(groups: dict[Any, tuple[Result, float]], key: Any, job: Result, count: float) -> None:
        groups[key] = (job, groups[key][1] + count if key in groups else count)

    def _shared(self, work: Callable[[Result, Text], float], job: Result, drawn: float) -> float:
        """The work of a sentence × sentences × the canvases of each that are different."""
        text = self._text(job, job.wildcards["testset"])
        return text.sentences * self.different(drawn, text) * work(job, text)

    def different(self, drawn: float, text: Text) -> float:
        """How many of the lengths that methods choose for a sentence are different ones; all without a store."""
        among = max(1.0, SPREAD * text.target)
        return among * (1 - (1 - 1 / among) ** drawn) if self.experiment.store else drawn

    def of_scores(self, jobs: Iterable[Result]) -> float:
        """The work of COMET for the scores of a direction on a test set: what is the same text is scored once."""
        runs: dict[Any, tuple[Result, int]] = {}
        for job in jobs:
            system = job.wildcards["system"].partition("/")[2]
            key = (job.wildcards["backbone"], job.wildcards["seed"], system)
            self._draw(runs, key, job, 1)
        texts = [(self._text(job, job.wildcards["testset"]), drawn) for job, drawn in runs.values()]
        read = (text.sentences * self.different(drawn, text) * (_whole(text) + text.target) for text, drawn in texts)
        return 2 * self._comet() * sum(read)

    def _comet(self) -> float:
        """Parameters of the main COMET: those of its file, where it is there."""
        path = Path(comet_folder(self.experiment))
        path = path / CHECKPOINT if path.is_dir() else path
        if path.is_file():
            return path.stat().st_size / BYTES["float32"]
        return TOY if self.experiment.scoring.comet.training else COMET

    def _decoding(self, job: Result, text: Text) -> float:
        """One sentence on one canvas: a pass for each step that reveals something, twice where the order looks at the
        source-free pass too."""
        steps = min(float(job.wildcards["steps"]), text.target + 1)
        twice = 2 if source_guided(self.experiment, job.wildcards["order"]) else 1
        slots = text.target + 1
        tokens = _prompted(job, steps) * (_prompt(job) + text.source) + steps * slots
        rows = slots * (steps + 1) / 2
        return twice * self.size(job.wildcards["backbone"]).pass_work(tokens, rows)

    def _probe(self, job: Result, text: Text) -> float:
        """One pass over an all-mask canvas of one sentence; where few compute its prompt, the mean of its probes."""
        probes = self.probes(job) if "selector" in job.spec else 1
        share = _prompted(job, probes) / probes if probes else 1
        tokens = share * (_prompt(job) + text.source) + text.target
        return self.size(job.wildcards["backbone"]).pass_work(tokens, text.target)

    def probes(self, job: Result) -> float:
        """The passes by which a canvas is chosen, those that two lengths share left out."""
        settings, kind = job.spec["selector"], self._kind(job)
        if not getattr(kind, "probes", True):
            return 0
        ratios = settings.get("ratios")
        tried = len(ratios) if isinstance(ratios, list) else settings.get("candidates", PROBES)
        drafts = getattr(kind, "draft_steps", 0)
        return tried * (1 + (drafts if isinstance(drafts, int) else settings.get("steps", 0)))

    def contenders(self, canvas: Result) -> int:
        """The canvases that are decoded for each sentence."""
        settings: Mapping[str, Any] = canvas.spec["selector"]
        return settings.get("k") or settings.get("beam") or 2 * settings.get("radius", 0) + 1

    def _kind(self, job: Result) -> type:
        return find_method(selector_name(self.experiment, job.wildcards["method"]), {})

    def _text(self, job: Result, name: str, direction: str = "") -> Text:
        return self.texts.of(direction or job.wildcards["direction"], name)


def _whole(text: Text) -> float:
    return text.source + text.target


def _prompted(job: Result, passes: float) -> float:
    """How many of the passes over a sentence compute its prompt."""
    if attention_of(job.spec) == PREFIX:
        return min(1, passes)
    refresh = refresh_of(job.spec)
    return passes if refresh is None else math.ceil(passes / refresh)


def _prompt(job: Result) -> float:
    """The tokens that a prompt puts around the source."""
    return len(job.spec["prompt"].encode()) / TOKEN
