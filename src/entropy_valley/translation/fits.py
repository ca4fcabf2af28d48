"""What a run learns about lengths from its training pairs: length statistics and a length head, through the store.

The pairs take the test set's place in these jobs.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import files
from entropy_valley.decoding.requests import SHORTEST
from entropy_valley.errors import InputError
from entropy_valley.lengths import statistics
from entropy_valley.lengths.baselines import mean_confidence
from entropy_valley.lengths.ev import mean_entropy
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.progress import progress
from entropy_valley.revisions import DECODING, LENGTH_HEAD
from entropy_valley.store import Store
from entropy_valley.translation.job import ROW, ModelJob

if TYPE_CHECKING:
    import torch

PAIRS = ("train.jsonl", "dev.jsonl")  # of a corpus


def length_statistics(job: ModelJob) -> dict[str, Any]:
    """What calibrated length methods are fitted to, measured on the job's rows."""
    tokens = job.identity.prompt.tokens
    rows = job.rows[: job.spec.get("limit")]
    pairs = [(len(tokens(row["source"])), len(tokens(row["target"]))) for row in rows]
    lengths = [target + 1 for _, target in pairs]
    # A corpus lies in the order of its keyed hash: its beginning is a random sample, and only that is probed.
    probed = job.on(rows[: max(job.spec["pairs"], job.spec["bias_pairs"])])
    return {
        "ratio": statistics.ratio_moments(pairs),
        "line": statistics.length_line(pairs),
        "expected_entropy": statistics.expected_entropies(_entropies(probed, lengths)),
        "confidence_bias": statistics.confidence_bias(_confidences(probed, lengths)),
    }


def _entropies(job: ModelJob, lengths: Sequence[int]) -> list[tuple[int, float]]:
    """(true length, mean entropy) of one all-mask canvas a pair; an empty target has no slot to take a mean of."""
    rows = range(min(job.spec["pairs"], len(job.rows)))
    canvases = [
        (place, lengths[place]) for place in rows if lengths[place] > 1 and job.inputs.fits(place, lengths[place])
    ]
    readings = job.probe(canvases)
    return [(length, mean_entropy(reading)) for (_, length), reading in zip(canvases, readings, strict=True)]


def _confidences(job: ModelJob, lengths: Sequence[int]) -> list[tuple[int, float]]:
    """(length, mean max-probability) of canvases whose length is not near the pair's own."""
    canvases = [
        (place, length)
        for place in range(min(job.spec["bias_pairs"], len(job.rows)))
        for length in statistics.LENGTHS
        if abs(length - lengths[place]) > statistics.NEAR and job.inputs.fits(place, length)
    ]
    readings = job.probe(canvases)
    return [(length, mean_confidence(reading)) for (_, length), reading in zip(canvases, readings, strict=True)]


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
    digests = [files.file_digest(path) for path in (job.testset, dev)]
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
    """What length methods use that a run has fitted to its training pairs: length statistics, as they see them, and the
    weights of the length head; None where no method of the job uses it. ``facts`` is what a header says of them."""

    statistics: LengthStatistics | None = None
    head: bytes | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, job: ModelJob, specs: Mapping[str, Any] | None) -> Self:
        """What the ``fits`` of a job's spec ask for, if anything, from the run's corpus, through the store.

        The probes of training pairs have a store of their own: all others would read past them.
        """
        if not specs:
            return cls()
        (train, dev), kept = (job.execution.corpus / name for name in PAIRS), job.execution.store
        pairs, measured, head, facts = job.on(files.read_jsonl(train, ROW), train), None, None, {}
        if spec := specs.get("length_statistics"):
            with Store(kept and kept / "length_statistics") as store:
                facts["length_statistics"] = length_statistics(pairs.with_spec(spec, store))
            measured = LengthStatistics.of(facts["length_statistics"])
        if spec := specs.get("length_head"):
            head, facts["length_head"] = length_head(pairs.with_spec(spec), dev)
        return cls(measured, head, facts)


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
