"""What a run's length head says of each sentence, through the store: each prompt is read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.canvas.job import Job
from entropy_valley.decoding.keys import prediction_key


def predict(job: Job, path: Path) -> list[dict[int, float]]:
    """For each row of the test set the log-probabilities of its likeliest canvas lengths, the likeliest first.

    ``path`` is the head's ``.safetensors``. The model is loaded at a miss; a row costs one pass over its prompt.
    """
    head_digest = files.file_digest(path)
    keys = [prediction_key(job.card.digest, job.numerics, prompt, head_digest) for prompt in job.prompts]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.canvas.length_head import LengthHead, mean_states

        head, prompts = LengthHead.read(path, job.backbone.device), [job.prompts[place] for place in missing]
        for index, state in mean_states(job.backbone, prompts, job.ledger, job.token_budget):
            found = head.likeliest(state, job.card.context - len(prompts[index]))
            yield missing[index], [[length, logprob] for length, logprob in found.items()]

    return [dict(map(tuple, value)) for value in job.recall("length head", keys, compute)]
