"""Fillings in a job: through the store, and what each sentence took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley.canvas.reading import Reading
from entropy_valley.decoding.keys import filling_key, probe_key

if TYPE_CHECKING:
    from entropy_valley.canvas.job import Job
    from entropy_valley.decoding.translation import Denoising


def fill_growing(job: Job, lengths: Sequence[int], denoising: Denoising) -> list[dict[str, Any]]:
    """What the filling makes of the canvas of each row, from that many masks on (:class:`Grown` as JSON)."""
    filling, checkpoint, numerics = denoising.filling, job.card.digest, job.numerics
    keys = [
        filling_key(checkpoint, numerics, prompt, length, denoising.order, denoising.settings)
        for prompt, length in zip(job.prompts, lengths, strict=True)
    ]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.decoding.growing.runner import GrowingCanvas, grow

        growing = []
        for place in missing:
            prompt, length = job.prompts[place], lengths[place]
            start = job.store.get(probe_key(checkpoint, numerics, prompt, length))
            most = min(filling.cap, job.room(place))
            growing.append((place, GrowingCanvas(prompt, length, most, start and Reading.from_json(start))))
        for place, result in grow(job.engine, growing, filling):
            yield place, result.to_json()

    return job.recall("decode", keys, compute)


def growing_counts(canvas: Mapping[str, Any], prompt: int, filled: Mapping[str, Any]) -> dict[str, int]:
    """The counts of a hypothesis row: what the method needed, and what the engine needs by itself, the all-mask pass
    once where its length was among the probed."""
    passes, slots, length = filled["passes"], filled["slots"], canvas["length"]
    reused = int(bool(canvas["scores"]) and length in canvas["candidates"])
    calls = canvas["calls"] + passes
    return {
        "calls": calls,
        "slots": canvas["slots"] + slots,
        "passes": calls - reused,
        "run_tokens": (calls - reused) * prompt + canvas["slots"] + slots - reused * length,
        "head_rows": canvas["slots"] + filled["rows"] - reused * length,
    }
