"""What a run learns about lengths from its pairs: length statistics and a length head from training pairs, and what
length methods learn from development pairs. All through the store.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import files, plugins
from entropy_valley.decoding.canvas import SHORTEST
from entropy_valley.decoding.requests import Runner
from entropy_valley.errors import InputError, brief
from entropy_valley.lengths import LengthMethod, make_method, statistics
from entropy_valley.lengths.base import Example, declared, probing
from entropy_valley.lengths.baselines import mean_confidence
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.progress import progress
from entropy_valley.revisions import DECODING, LENGTH_HEAD
from entropy_valley.settings import JsonObject
from entropy_valley.store import Store
from entropy_valley.texts import counted
from entropy_valley.translation.job import ROW, RunModel
from entropy_valley.translation.sentences import Sentences, caught

if TYPE_CHECKING:
    import torch

    from entropy_valley.lengths.length_head import LengthHead


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs that length methods are fitted to; the ``runner`` reads canvases of the first ones, exactly."""

    sentences: Sentences
    runner: Runner

    def statistics(self, parts: Sequence[str], bias_pairs: int = 0) -> JsonObject:
        """These ``parts`` of the statistics; that of confidences from the first ``bias_pairs`` pairs."""
        sources, targets = self.sentences.tokens("source"), self.sentences.tokens("target")
        measured: dict[str, Any] = {"line": statistics.length_line(list(zip(sources, targets, strict=True)))}
        if "confidence_bias" in parts:
            # A corpus lies in the order of its keyed hash: its beginning is a random sample, and only that is probed.
            sentences, probes = self.sentences.first(bias_pairs), []
            # All pairs at once: their probes share passes, and equal ones are read once.
            for place, target in enumerate(targets[:bias_pairs]):
                for length in statistics.LENGTHS:
                    if abs(length - target - 1) > statistics.NEAR and sentences.fits(place, length):
                        probes.append(sentences.probe(place, length))
            pairs = zip(probes, self.runner.answers(probes), strict=True)
            confidences = [(probe.length, mean_confidence(reading)) for probe, reading in pairs]
            measured["confidence_bias"] = statistics.confidence_bias(confidences)
        return {part: measured[part] for part in parts}

    def examples(self, method: LengthMethod) -> list[Example]:
        """What a method learns from: the first pairs, without those whose canvases exceed the context."""
        pairs = self.sentences.first(getattr(method, "pairs", None))
        seen, targets, works = pairs.seen_by(method), pairs.tokens("target"), []
        for place, sentence in enumerate(seen):
            work = probing(method, sentence, partial(pairs.probe, place), pairs.rows[place]["id"])
            works.append((place, caught(work, lambda error: None)))
        examples = []
        # In the order of the pairs, not in that in which they are done: what a fit rounds must not depend on a batch.
        for place, probes in sorted(self.runner.run(works), key=itemgetter(0)):
            if probes is not None:
                examples.append(Example(seen[place], probes, targets[place] + 1))
        return examples

    def taught(self, method: LengthMethod) -> tuple[LengthMethod, JsonObject]:
        """A copy of the method that has learned from the pairs, and what it says of that."""
        examples = self.examples(method)
        about = counted(len(examples), "pair")
        with plugins.calling(method, "learn", about):
            answer = method.learn(examples)  # type: ignore[attr-defined]
        if not (isinstance(answer, tuple) and len(answer) == 2):
            problem = f"returns {brief(answer)}, which is not two"
            remedy = "Return the copy that has learned, and facts."
            raise plugins.refused(method, "learn", about, problem, remedy)
        return answer


def length_head(model: RunModel, training: Sentences, dev: Path, spec: JsonObject) -> tuple[bytes, dict[str, Any]]:
    """The head that a spec asks for, trained on training pairs where the store has it not: the bytes of its
    ``.safetensors``, and how well it does on training and dev pairs."""
    settings = dict(spec["training"])
    # A corpus lies in the order of its keyed hash: its beginning is a random sample.
    train = training.rows[: spec.get("limit")][: settings.pop("pairs")]
    both = dataclasses.replace(training, rows=[*train, *files.read_jsonl(dev, ROW)])
    # A pair is of use where its prompt leaves room for some canvas; how long its target is does not matter.
    kept = [place for place in range(len(both.rows)) if both.fits(place, SHORTEST)]
    if not kept or kept[0] >= len(train):
        raise InputError(training.file, "no training pair fits the context", "Give shorter pairs.")
    digests = [training.data_digest, files.file_digest(dev)]
    stage = ["trained length head", DECODING, LENGTH_HEAD, model.digest, model.engine_numerics]
    limit = [spec["limit"]] if "limit" in spec else []
    key = files.digest([*stage, *digests, spec["training"], spec["seed"], *limit])

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        import torch

        from entropy_valley.lengths.length_head import fit, mean_states, report

        fitting = both.at(kept)
        means = mean_states(model.engine, fitting.prompts)
        by_place = dict(progress(means, len(kept), "prompts", "pair"))
        states, cut = torch.stack([by_place[place] for place in range(len(kept))]), sum(n < len(train) for n in kept)
        lengths = [target + 1 for target in fitting.tokens("target")]
        head = fit(states[:cut], lengths[:cut], seed=spec["seed"], **settings)
        info = {"train": report(head, states[:cut], lengths[:cut]), "dev": report(head, states[cut:], lengths[cut:])}
        yield 0, {"weights": base64.b64encode(head.to_bytes()).decode(), "info": info}

    (value,) = model.recall("trained length head", [key], compute)
    return base64.b64decode(value["weights"]), value["info"]


def predict(model: RunModel, sentences: Sentences, weights: bytes) -> list[dict[int, float]]:
    """For each sentence the log-probabilities of its likeliest canvas lengths, the likeliest first.

    ``weights`` are the head's. The model is loaded at a miss; a sentence costs one pass over its prompt.
    """
    prompts = sentences.prompts
    stage = ["length head", DECODING, LENGTH_HEAD, model.digest, model.engine_numerics]
    keys = [files.digest([*stage, list(prompt), files.bytes_digest(weights)]) for prompt in prompts]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.lengths.length_head import LengthHead, predictions

        head = LengthHead.of(weights, model.backbone.device)
        for index, likeliest in predictions(head, model.engine, [prompts[place] for place in missing]):
            yield missing[index], list(likeliest.items())

    return [dict(map(tuple, value)) for value in model.recall("length head", keys, compute)]


@dataclass
class Fits:
    """What length methods use that a run has fitted to its pairs: length statistics, as they see them, the methods that
    have learned, by name, and the weights of the length head; None where no method of the job uses it. ``facts`` is
    what a header says of them."""

    statistics: LengthStatistics | None = None
    learned: dict[str, LengthMethod] = field(default_factory=dict)
    head: bytes | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: RunModel, specs: JsonObject | None) -> Self:
        """What the ``fits`` of a job's spec ask for, if anything, from the run's corpus, through the store.

        The probes of these pairs have a store of their own: all others would read past them.
        """
        fits = cls()
        if not specs:
            return fits
        (train, dev), kept = model.execution.pairs, model.execution.store
        training = model.sentences(train)
        # In this order: what learns may use the statistics, and no probe needs the length head.
        with Store(kept and kept / "fits") as store:
            if spec := specs.get("length_statistics"):
                pairs = Pairs(training.first(spec.get("limit")), model.runner("probe", store))
                measured = pairs.statistics(spec["parts"], spec.get("bias_pairs", 0))
                fits.statistics, fits.facts["length_statistics"] = LengthStatistics.of(measured), measured
            if spec := specs.get("learned"):
                held_out = Pairs(model.sentences(dev), model.runner("probe", store))
                facts = fits.facts["learned"] = {}
                for name, settings in spec["methods"].items():
                    fits.learned[name], facts[name] = held_out.taught(fits.method(name, settings))
        if spec := specs.get("length_head"):
            fits.head, fits.facts["length_head"] = length_head(model, training, dev, spec)
        return fits

    def method(self, name: str, settings: JsonObject) -> LengthMethod:
        """A length method of the job, with what it has learned."""
        return self.learned.get(name) or make_method(name, settings, self.statistics)

    def length_head(self, method: LengthMethod, device: torch.device | str) -> LengthHead | None:
        """The length head, for a method that uses it."""
        from entropy_valley.lengths.length_head import LengthHead

        uses = declared(method, "uses_length_head")
        return LengthHead.of(self.head, device) if self.head and uses else None
