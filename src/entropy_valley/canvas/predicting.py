"""What a run's length head says of each sentence, through the store: each prompt is read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.canvas.length_methods import LengthMethod
from entropy_valley.engine.job import Job
from entropy_valley.engine.keys import prediction_key
from entropy_valley.errors import InputError


def needed_head(name: str, method: LengthMethod, path: Path | None) -> Path | None:
    """The file of the run's length head where the method uses it, else None.

    Raises InputError where it is needed and not given.
    """
    if not getattr(method, "uses_length_head", False):
        return None
    if path is None:
        raise InputError(f"length method {name!r}", "needs a length head", "Give it as --length-head.")
    return path


def predict(job: Job, path: Path) -> list[dict[int, float]]:
    """For each row of the test set the log-probabilities of its likeliest canvas lengths, the likeliest first.

    ``path`` is the head's ``.safetensors``. The model is loaded at a miss; a row costs one pass over its prompt.
    """
    head_digest = files.file_digest(path)
    keys = [prediction_key(job.identity.digest, job.numerics, prompt, head_digest) for prompt in job.inputs.prompts]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.canvas.length_head import LengthHead, predictions

        head, prompts = LengthHead.read(path, job.backbone.device), [job.inputs.prompts[place] for place in missing]
        for index, found in predictions(head, job.backbone, prompts, job.ledger, job.token_budget):
            yield missing[index], [[length, logprob] for length, logprob in found.items()]

    return [dict(map(tuple, value)) for value in job.recall("length head", keys, compute)]
