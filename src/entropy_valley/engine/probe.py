"""All-mask canvases through the store: each is read once, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from entropy_valley.engine.job import Job
from entropy_valley.engine.keys import probe_key, sig_key
from entropy_valley.engine.queue import Canvas, Queue
from entropy_valley.engine.reading import Reading


def probe(job: Job, asked: Sequence[tuple[int, int]]) -> list[Reading]:
    """The reading of each all-mask canvas, named by (row of the test set, slots); the model is loaded at a miss.

    Raises InputError, before any pass, if one exceeds the context.
    """
    canvases = [Canvas(job.prompts[place], length) for place, length in asked]
    checkpoint, numerics = job.identity.digest, job.numerics
    keys = [probe_key(checkpoint, numerics, canvas.prompt, canvas.length) for canvas in canvases]
    return _read(job, "probe", asked, canvases, keys)


def probe_sig(job: Job, asked: Sequence[tuple[int, int]]) -> list[Reading]:
    """As :func:`probe`, with the SIG of every slot: a second pass without the source for each canvas."""
    canvases = [Canvas(job.prompts[place], length, sourceless=job.sourceless) for place, length in asked]
    keys = [
        sig_key(job.identity.digest, job.numerics, canvas.prompt, job.sourceless, canvas.length) for canvas in canvases
    ]
    return _read(job, "sig", asked, canvases, keys)


def _read(
    job: Job, what: str, asked: Sequence[tuple[int, int]], canvases: Sequence[Canvas], keys: Sequence[str]
) -> list[Reading]:
    for place, length in asked:
        job.check(place, length)

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        queue = Queue((index, canvases[index]) for index in missing)
        for index, reading in job.engine.run(queue):
            yield index, reading.to_json()

    return [Reading.from_json(value) for value in job.recall(what, keys, compute)]
