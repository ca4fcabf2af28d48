"""Fillings in a job: through the store, and what each sentence took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley.canvas.reading import Reading
from entropy_valley.decoding.keys import filling_key, probe_key

if TYPE_CHECKING:
    from entropy_valley.canvas.job import Job
    from entropy_valley.decoding.translation import Denoising


def fill_growing(job: Job, asked: Sequence[tuple[int, int]], denoising: Denoising) -> list[dict[str, Any]]:
    """What the filling makes of each (row of the test set, masks to start from), :class:`Grown` as JSON."""
    filling, checkpoint, numerics = denoising.filling, job.card.digest, job.numerics
    keys = [
        filling_key(checkpoint, numerics, job.prompts[place], length, denoising.order, denoising.settings)
        for place, length in asked
    ]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.decoding.growing.runner import GrowingCanvas, grow

        growing = []
        for index in missing:
            place, length = asked[index]
            prompt = job.prompts[place]
            start = job.store.get(probe_key(checkpoint, numerics, prompt, length))
            most = min(filling.cap, job.room(place))
            growing.append((index, GrowingCanvas(prompt, length, most, start and Reading.from_json(start))))
        for index, result in grow(job.engine, growing, filling):
            yield index, result.to_json()

    return job.recall("decode", keys, compute)


def growing_cost(length: int, prompt: int, filled: Mapping[str, Any], reused: int) -> dict[str, int]:
    """What a filling costs after the probes: what the method needed, and what the engine needs by itself, without the
    all-mask pass where that is ``reused``."""
    passes, slots = filled["passes"], filled["slots"]
    return {
        "calls": passes,
        "slots": slots,
        "passes": passes - reused,
        "run_tokens": (passes - reused) * prompt + slots - reused * length,
        "head_rows": filled["rows"] - reused * length,
    }
