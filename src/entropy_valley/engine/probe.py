"""All-mask canvases: each is read once, whoever asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from entropy_valley import files
from entropy_valley.engine.distractor import gains
from entropy_valley.engine.queue import Canvas
from entropy_valley.engine.reading import Reading
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.engine.job import Job
    from entropy_valley.engine.requests import Canvases, Request
    from entropy_valley.model.load import Backbone


@dataclass(frozen=True)
class Probe:
    """The request for the reading of ``length`` masks behind a prompt.

    With ``sourceless``, the prompt of an empty source, the reading has the SIG of every slot: a second sequence. With
    ``beside``, another length, the prompt's keys and values are those that it has before a canvas of so many masks.
    ``is_source``: this one may be such another length for probes that come later.
    """

    result: ClassVar[type] = Reading

    prompt: Sequence[int]
    length: int
    sourceless: Sequence[int] | None = None
    beside: int | None = None
    is_source: bool = False

    def key(self, checkpoint: str, numerics: str) -> str:
        kind, sourceless = ("probe", []) if self.sourceless is None else ("sig", [list(self.sourceless)])
        canvas = [*sourceless, self.length, *([] if self.beside is None else ["beside", self.beside])]
        return files.digest([kind, DECODING, checkpoint, numerics, list(self.prompt), *canvas])

    def canvases(self, backbone: Backbone, known: Callable[[Request], Any]) -> Canvases:
        more = {"sourceless": self.sourceless, "beside": self.beside, "is_source": self.is_source}
        return (yield Canvas(self.prompt, self.length, **more))


def requests(job: Job, asked: Sequence[tuple[int, int]], sig: bool = False) -> list[Probe]:
    """A probe for each all-mask canvas, named by (row of the test set, slots), on request with its SIG.

    Raises InputError if a canvas exceeds the context.
    """
    inputs = job.inputs
    for place, length in asked:
        inputs.check(place, length)
    sourceless = inputs.sourceless if sig else None
    return [Probe(inputs.prompts[place], length, sourceless) for place, length in asked]


def probe(job: Job, asked: Sequence[tuple[int, int]]) -> list[Reading]:
    """The reading of each of the :func:`requests`; the model is loaded at a miss."""
    return job.runner("probe").answers(requests(job, asked))


def sig_requests(job: Job, asked: Sequence[tuple[int, int]], sig: str) -> list[Probe]:
    """What is read for the SIG of each all-mask canvas: one probe with a ``stepwise_kl``, or two, the second behind the
    sentence's distractor."""
    if sig == "stepwise_kl":
        return requests(job, asked, sig=True)
    pairs = (((place, length), (job.inputs.distractor(place), length)) for place, length in asked)
    return requests(job, list(itertools.chain.from_iterable(pairs)))


def slot_sigs(job: Job, asked: Sequence[tuple[int, int]], sig: str) -> list[tuple[float, ...]]:
    """The SIG of each slot (nats) of each of these canvases, of the kind that an order's ``sig`` names."""
    readings = job.runner("sig").answers(sig_requests(job, asked, sig))
    if sig == "stepwise_kl":
        return [reading.sigs for reading in readings]
    return list(map(gains, readings[::2], readings[1::2]))
