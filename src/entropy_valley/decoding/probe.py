"""Requests that read a canvas: all masks, revealed in part, or a finished text. And the SIG against a distractor.

The SIG against a distractor is computed once a sentence: how much less a slot wavers behind its source than behind
another one. It is the authors' SIG, and the one that counts unless a config says otherwise: H(slot | distractor) -
H(slot | source), both on the all-mask canvas. They divide it by log |V|, which changes no order. The distractor is
another source of the same test set whose number of words is within a fifth (:func:`.inputs.distractors`).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from entropy_valley import files
from entropy_valley.decoding.requests import VALUES, Canvas, Reading
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.decoding.head import Head
    from entropy_valley.decoding.job import Job
    from entropy_valley.decoding.requests import Canvases, Request
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

    def canvases(self, backbone: Backbone, stored: Callable[[Request], Any]) -> Canvases:
        more = {"sourceless": self.sourceless, "beside": self.beside, "is_source": self.is_source}
        return (yield Canvas(self.prompt, self.length, **more))


def requests(job: Job, canvases: Sequence[tuple[int, int]], sig: bool = False) -> list[Probe]:
    """A probe for each all-mask canvas, named by (row of the test set, slots), on request with its SIG.

    Raises InputError if a canvas exceeds the context.
    """
    inputs = job.inputs
    for place, length in canvases:
        inputs.check(place, length)
    sourceless = inputs.sourceless if sig else None
    return [Probe(inputs.prompts[place], length, sourceless) for place, length in canvases]


def probe(job: Job, canvases: Sequence[tuple[int, int]]) -> list[Reading]:
    """The reading of each of the :func:`requests`; the model is loaded at a miss."""
    return job.runner("probe").answers(requests(job, canvases))


def sig_requests(job: Job, canvases: Sequence[tuple[int, int]], sig: str) -> list[Probe]:
    """What is read for the SIG of each all-mask canvas: one probe with a ``stepwise_kl``, or two, the second behind the
    sentence's distractor."""
    if sig == "stepwise_kl":
        return requests(job, canvases, sig=True)
    pairs = (((place, length), (job.inputs.distractor(place), length)) for place, length in canvases)
    return requests(job, list(itertools.chain.from_iterable(pairs)))


def slot_sigs(job: Job, canvases: Sequence[tuple[int, int]], sig: str) -> list[tuple[float, ...]]:
    """The SIG of each slot (nats) of each of these canvases, of the kind that an order's ``sig`` names."""
    readings = job.runner("sig").answers(sig_requests(job, canvases, sig))
    if sig == "stepwise_kl":
        return [reading.sigs for reading in readings]
    return list(map(gains, readings[::2], readings[1::2]))


@dataclass(frozen=True)
class Draft:
    """The request for the reading of ``length`` masks behind a prompt after ``steps`` of ``steps`` + 1 steps.

    A step reveals the slots of the lowest entropy, so many that ⌊L·t/T⌋ of them are revealed after step t. The reading
    has all slots: of a revealed one what its own step read, of the others what the last pass reads.
    """

    result: ClassVar[type] = Reading

    prompt: Sequence[int]
    length: int
    steps: int

    def key(self, checkpoint: str, numerics: str) -> str:
        return files.digest(["draft", DECODING, checkpoint, numerics, list(self.prompt), self.length, self.steps])

    def canvases(self, backbone: Backbone, stored: Callable[[Request], Any]) -> Canvases:
        mask, hidden = backbone.mask_id, list(range(self.length))
        tokens, seen = [mask] * self.length, [()] * self.length
        reading = stored(Probe(self.prompt, self.length))
        for step in range(self.steps + 1):
            if reading is None:
                revealed = len(hidden) < self.length
                reading = yield Canvas(self.prompt, self.length, tokens=list(tokens) if revealed else None)
            for slot, values in zip(
                hidden, zip(*(getattr(reading, name) for name in VALUES), strict=True), strict=True
            ):
                seen[slot] = values
            count = self._revealed(step + 1) - self._revealed(step) if step < self.steps else 0
            for slot in sorted(hidden, key=lambda slot: (seen[slot][1], slot))[:count]:
                tokens[slot] = seen[slot][0]
            hidden = [slot for slot in hidden if tokens[slot] == mask]
            reading = None if count else reading  # nothing revealed: the next pass would read the same
        return Reading(*zip(*seen, strict=True))

    def _revealed(self, step: int) -> int:
        return self.length * step // (self.steps + 1)


class Gain(NamedTuple):
    """The prompt of a sentence's distractor, and the SIG of each slot of one of its all-mask canvases (nats). Of
    anchors their slots, and 1 for each slot that is one."""

    distractor: Sequence[int]
    sigs: tuple[float, ...]


def anchored(slots: Sequence[int], length: int) -> Gain:
    """Which slots of a canvas are anchors; those beyond its end are left out."""
    within = [slot for slot in slots if slot < length]
    return Gain(within, tuple(float(slot in within) for slot in range(length)))


def gains(own: Reading, distracted: Reading) -> tuple[float, ...]:
    """The SIG of each slot, from the readings of the same all-mask canvas behind the two prompts."""
    return tuple(other - one for one, other in zip(own.entropies, distracted.entropies, strict=True))


@dataclass(frozen=True)
class Score:
    """Mean log-probability of a finished text's tokens and its first EOS (nats, six decimals)."""

    logprob: float

    def to_json(self) -> dict[str, Any]:
        return vars(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**value)


@dataclass(frozen=True)
class Finished:
    """The request for the score of a text in a canvas of ``length`` slots behind a prompt, the rest of them EOS.

    A text that is longer than the canvas is cut, as in the authors' code. Its pass is its own: no company.
    """

    result: ClassVar[type] = Score

    prompt: Sequence[int]
    text: Sequence[int]
    length: int
    mask_token: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """What is run, as a ledger counts it."""
        return {"passes": 1, "tokens": len(self.prompt) + self.length, "rows": self.length}

    def key(self, checkpoint: str, numerics: str) -> str:
        parts = [list(self.prompt), list(self.text), self.length]
        return files.digest(["finished", DECODING, checkpoint, numerics, *parts])

    def canvases(self, backbone: Backbone, stored: Callable[[Request], Any]) -> Canvases:
        """None is left to the engine."""
        yield from ()
        tokens = [*self.text, *[backbone.eos_id] * self.length][: self.length]
        scored = min(len(self.text) + 1, self.length)
        logprobs = _token_logprobs(backbone, self.prompt, tokens, self.mask_token)[:scored]
        return Score(round(math.fsum(logprobs) / scored, 6))


def _token_logprobs(backbone: Backbone, prompt: Sequence[int], tokens: Sequence[int], mask_token: bool) -> list[float]:
    """The log-probability of each token of a canvas, all of them being seen."""
    import torch

    from entropy_valley.model.attention import hidden_states, pack

    with torch.inference_mode():
        packed = pack([[*prompt, *tokens]], backbone.device, [backbone.prefix(len(prompt))])
        first = len(prompt) - int(backbone.shifted)
        states = hidden_states(backbone.model, packed)[first : first + len(tokens)]
        head, count = _head(backbone.model.lm_head, backbone.float32_head), len(tokens)
        chunks = (torch.cat([logits for _, logits in head.blocks(chunk)], 1) for chunk in head.chunks(states))
        logits = torch.cat(list(chunks))[:count].double()
        if not mask_token:
            logits[:, backbone.mask_id] = -torch.inf
        ids = torch.tensor(tokens, device=logits.device)
        return logits.log_softmax(-1).gather(1, ids[:, None])[:, 0].tolist()


@functools.lru_cache(maxsize=1)
def _head(module: Any, float32: bool) -> Head:
    """One for all texts: with an adapter it may hold a float32 copy of the whole LM head."""
    from entropy_valley.decoding.head import Head

    return Head(module, float32)
