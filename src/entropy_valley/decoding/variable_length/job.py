"""Fillings in a job: through the store, and what each sentence took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley.decoding.variable_length.base import GrowingCanvas
from entropy_valley.engine.keys import filling_key, probe_key
from entropy_valley.engine.reading import Reading

if TYPE_CHECKING:
    from entropy_valley.decoding.denoising import Denoising
    from entropy_valley.engine.job import Job


def fill_growing(job: Job, asked: Sequence[tuple[int, int]], denoising: Denoising) -> list[dict[str, Any]]:
    """What the filling makes of each (row of the test set, masks to start from), :class:`Grown` as JSON."""
    filling, checkpoint, numerics = denoising.variable_length, job.identity.digest, job.numerics
    keys = [
        filling_key(checkpoint, numerics, job.prompts[place], length, denoising.name, denoising.settings)
        for place, length in asked
    ]

    def canvas(place: int, length: int) -> GrowingCanvas:
        start = job.store.get(probe_key(checkpoint, numerics, job.prompts[place], length))
        most = min(filling.cap, job.room(place))
        return GrowingCanvas(job.prompts[place], length, most, start and Reading.from_json(start))

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.decoding.variable_length.runner import grow

        for index, result in grow(job.engine, [(index, canvas(*asked[index])) for index in missing], filling):
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
