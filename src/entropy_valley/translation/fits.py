"""What a run learns about lengths from its pairs: length statistics and a length head from training pairs, and what
length methods learn from development pairs. All through the store.

The pairs take the test set's place in these jobs.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import files, plugins
from entropy_valley.decoding.requests import SHORTEST, Probe
from entropy_valley.errors import InputError, SentenceError, brief
from entropy_valley.lengths import LengthMethod, make_method, statistics
from entropy_valley.lengths.base import Example, declared, sentences_of
from entropy_valley.lengths.baselines import mean_confidence
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.progress import progress
from entropy_valley.revisions import DECODING, LENGTH_HEAD
from entropy_valley.store import Store
from entropy_valley.texts import counted
from entropy_valley.translation.job import ROW, ModelJob, Pipeline

if TYPE_CHECKING:
    import torch

    from entropy_valley.decoding.requests import Work
    from entropy_valley.lengths.length_head import LengthHead
    from entropy_valley.model.prompt import Prompt

Rows = list[dict[str, Any]]  # each with ``source`` and ``target``


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs that length methods are fitted to, and the ``pipeline`` that reads canvases of some of them."""

    rows: Rows
    prompt: Prompt
    pipeline: Callable[[Rows], Pipeline]

    @classmethod
    def of(cls, job: ModelJob) -> Self:
        """The rows of a job, or the first of them if its spec has a limit."""

        def pipeline(rows: Rows) -> Pipeline:
            part = job.on(rows)
            return Pipeline(part.runner("probe"), part.inputs)

        return cls(job.rows[: job.spec.get("limit")], job.identity.prompt, pipeline)

    def statistics(self, parts: Sequence[str], bias_pairs: int) -> dict[str, Any]:
        """These ``parts`` of the statistics; that of confidences from the first ``bias_pairs`` pairs."""
        tokens = self.prompt.tokens
        counts = [(len(tokens(row["source"])), len(tokens(row["target"]))) for row in self.rows]
        measured: dict[str, Any] = {"line": statistics.length_line(counts)}
        if "confidence_bias" in parts:
            # A corpus lies in the order of its keyed hash: its beginning is a random sample, and only that is probed.
            lengths = [target + 1 for _, target in counts[:bias_pairs]]
            measured["confidence_bias"] = statistics.confidence_bias(self._confidences(lengths))
        return {part: measured[part] for part in parts}

    def _confidences(self, lengths: Sequence[int]) -> list[tuple[int, float]]:
        """(length, mean max-probability) of canvases of the first pairs, whose own ``lengths`` are not near."""
        pipeline = self.pipeline(self.rows[: len(lengths)])
        canvases = [
            (place, length)
            for place, own in enumerate(lengths)
            for length in statistics.LENGTHS
            if abs(length - own) > statistics.NEAR and pipeline.inputs.fits(place, length)
        ]
        readings = pipeline.runner.answers([Probe(pipeline.inputs.prompts[place], slots) for place, slots in canvases])
        return [(length, mean_confidence(reading)) for (_, length), reading in zip(canvases, readings, strict=True)]

    def examples(self, method: LengthMethod) -> list[Example]:
        """What a method learns from: the first pairs, without those whose canvases exceed the context."""
        rows = self.rows[: getattr(method, "pairs", None)]
        pipeline = self.pipeline(rows)
        sentences = sentences_of(rows, self.prompt, method, rooms=pipeline.inputs.rooms)
        works = ((place, _if_it_fits(pipeline.probing(method, place, one))) for place, one in enumerate(sentences))
        probed = sorted((place, probes) for place, probes in pipeline.runner.run(works) if probes is not None)
        lengths = [len(self.prompt.tokens(row["target"])) + 1 for row in rows]
        return [Example(sentences[place], probes, lengths[place]) for place, probes in probed]

    def taught(self, method: LengthMethod) -> tuple[LengthMethod, Mapping[str, Any]]:
        """A copy of the method that has learned from the pairs, and what it says of that."""
        examples = self.examples(method)
        about = counted(len(examples), "pair")
        with plugins.calling(method, "learn", about):
            answer = method.learn(examples)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            problem = f"returns {brief(answer)}, which is not two"
            remedy = "Return the copy that has learned, and facts."
            raise plugins.refused(method, "learn", about, problem, remedy)
        return answer


def _if_it_fits(work: Work) -> Work:
    """The same work; None where a canvas exceeds the context."""
    try:
        return (yield from work)
    except SentenceError:
        return None


def length_statistics(job: ModelJob) -> dict[str, Any]:
    """What the job's spec asks for of its rows."""
    return Pairs.of(job).statistics(job.spec["parts"], job.spec.get("bias_pairs", 0))


def length_head(job: ModelJob, dev: Path) -> tuple[bytes, dict[str, Any]]:
    """The head that the job's spec asks for, trained on the job's rows where the store has it not: the bytes of its
    ``.safetensors``, and how well it does on training and dev pairs."""
    settings = dict(job.spec["training"])
    # A corpus lies in the order of its keyed hash: its beginning is a random sample.
    train = job.rows[: job.spec.get("limit")][: settings.pop("pairs")]
    both = job.on(train + files.read_jsonl(dev, ROW))
    kept = [place for place in range(len(both.rows)) if both.inputs.fits(place, SHORTEST)]
    if not kept or kept[0] >= len(train):
        raise InputError(job.testset, "no training pair fits the context", "Give shorter pairs.")
    digests = [job.data_digest, files.file_digest(dev)]
    stage = ["trained length head", DECODING, LENGTH_HEAD, job.identity.digest, job.numerics]
    limit = [job.spec["limit"]] if "limit" in job.spec else []
    key = files.digest([*stage, *digests, job.spec["training"], job.spec["seed"], *limit])

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.lengths.length_head import fit, report

        lengths = [len(both.identity.prompt.tokens(both.rows[place]["target"])) + 1 for place in kept]
        states, cut = _states(both, kept), sum(place < len(train) for place in kept)
        head = fit(states[:cut], lengths[:cut], seed=job.spec["seed"], **settings)
        parts = {"train": slice(None, cut), "dev": slice(cut, None)}
        info = {name: report(head, states[part], lengths[part]) for name, part in parts.items()}
        yield 0, {"weights": base64.b64encode(head.to_bytes()).decode(), "info": info}

    (value,) = job.recall("trained length head", [key], compute)
    return base64.b64decode(value["weights"]), value["info"]


@dataclass(frozen=True)
class Fits:
    """What length methods use that a run has fitted to its pairs: length statistics, as they see them, the methods that
    have learned, by name, and the weights of the length head; None where no method of the job uses it. ``facts`` is
    what a header says of them."""

    statistics: LengthStatistics | None = None
    learned: Mapping[str, LengthMethod] = field(default_factory=dict)
    head: bytes | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, job: ModelJob, specs: Mapping[str, Any] | None) -> Self:
        """What the ``fits`` of a job's spec ask for, if anything, from the run's corpus, through the store.

        The probes of these pairs have a store of their own: all others would read past them.
        """
        if not specs:
            return cls()
        (train, dev), kept = job.execution.pairs, job.execution.store
        pairs, fits = job.on(files.read_jsonl(train, ROW), train), cls()
        facts: dict[str, Any] = {}
        with Store(kept and kept / "fits") as store:
            if spec := specs.get("length_statistics"):
                facts["length_statistics"] = length_statistics(pairs.with_spec(spec, store))
                fits = cls(LengthStatistics.of(facts["length_statistics"]))
            if spec := specs.get("learned"):
                held_out, learned = job.on(files.read_jsonl(dev, ROW), dev).with_spec(spec, store), {}
                for name, settings in spec["methods"].items():
                    learned[name] = Pairs.of(held_out).taught(fits.method(name, settings))
                facts["learned"] = {name: told for name, (_, told) in learned.items()}
                fits = dataclasses.replace(fits, learned={name: method for name, (method, _) in learned.items()})
        if spec := specs.get("length_head"):
            head, facts["length_head"] = length_head(pairs.with_spec(spec), dev)
            fits = dataclasses.replace(fits, head=head)
        return dataclasses.replace(fits, facts=facts)

    def method(self, name: str, settings: Mapping[str, Any]) -> LengthMethod:
        """A length method of the job, with what it has learned."""
        return self.learned.get(name) or make_method(name, settings, self.statistics)

    def length_head(self, method: LengthMethod, device: torch.device | str) -> LengthHead | None:
        """The length head, for a method that uses it."""
        from entropy_valley.lengths.length_head import LengthHead

        uses = declared(method, "uses_length_head")
        return LengthHead.of(self.head, device) if self.head and uses else None


def _states(job: ModelJob, places: list[int]) -> torch.Tensor:
    """The mean state of each row's prompt, (rows, width) in float32 on the model's device."""
    import torch

    from entropy_valley.lengths.length_head import mean_states

    prompts = [job.inputs.prompts[place] for place in places]
    states = torch.empty(len(prompts), job.backbone.model.config.hidden_size, device=job.backbone.device)
    with progress(total=len(prompts), description="prompts", unit="pair") as bar:
        for index, state in mean_states(job.backbone, prompts, job.ledger, job.execution.token_budget, job.fill):
            states[index] = state
            bar.update()
    return states


def predict(job: ModelJob, weights: bytes) -> list[dict[int, float]]:
    """For each row of the test set the log-probabilities of its likeliest canvas lengths, the likeliest first.

    ``weights`` are the head's. The model is loaded at a miss; a row costs one pass over its prompt.
    """
    stage = ["length head", DECODING, LENGTH_HEAD, job.identity.digest, job.numerics]
    keys = [files.digest([*stage, list(prompt), files.bytes_digest(weights)]) for prompt in job.inputs.prompts]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.lengths.length_head import LengthHead, predictions

        head, prompts = LengthHead.of(weights, job.backbone.device), [job.inputs.prompts[place] for place in missing]
        for index, likeliest in predictions(
            head, job.backbone, prompts, job.ledger, job.execution.token_budget, job.fill
        ):
            yield missing[index], [[length, logprob] for length, logprob in likeliest.items()]

    return [dict(map(tuple, value)) for value in job.recall("length head", keys, compute)]
