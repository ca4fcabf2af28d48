"""Fillings in a job: through the store, and what each sentence took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley.canvas.reading import Reading
from entropy_valley.decoding.growing.slots import GrowingCanvas
from entropy_valley.decoding.keys import filling_key, probe_key

if TYPE_CHECKING:
    from entropy_valley.canvas.job import Job
    from entropy_valley.decoding.translation import Denoising


def fill_growing(job: Job, asked: Sequence[tuple[int, int]], denoising: Denoising) -> list[dict[str, Any]]:
    """What the filling makes of each (row of the test set, masks to begin with): :class:`Grown` as JSON."""
    filling, checkpoint, numerics = denoising.filling, job.card.digest, job.numerics
    keys = [
        filling_key(checkpoint, numerics, job.prompts[place], length, denoising.order, denoising.settings)
        for place, length in asked
    ]

    def canvas(place: int, length: int) -> GrowingCanvas:
        start = job.store.get(probe_key(checkpoint, numerics, job.prompts[place], length))
        most = min(filling.cap, job.room(place))
        return GrowingCanvas(job.prompts[place], length, most, start and Reading.from_json(start))

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.decoding.growing.runner import grow

        for index, result in grow(job.engine, [(index, canvas(*asked[index])) for index in missing], filling):
            yield index, result.to_json()

    return job.recall("decode", keys, compute)


def growing_cost(canvas: Mapping[str, Any], length: int, prompt: int, filled: Mapping[str, Any]) -> dict[str, int]:
    """What the method needed after the probes from so many masks on, and what the engine needs by itself: the all-mask
    pass is not run again where that length was among the probed."""
    passes, slots, reused = filled["passes"], filled["slots"], int(probed(canvas, length))
    return {
        "calls": passes,
        "slots": slots,
        "passes": passes - reused,
        "run_tokens": (passes - reused) * prompt + slots - reused * length,
        "head_rows": filled["rows"] - reused * length,
    }


def probed(canvas: Mapping[str, Any], length: int) -> bool:
    """Whether a canvas row's method has read the all-mask canvas of that length; it may have compared lengths without
    a probe, and then has no slots."""
    return bool(canvas["slots"] and canvas["scores"]) and length in canvas["candidates"]
