"""Many canvases that change while they are denoised, in shared passes: none padded, each as if it were alone."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from entropy_valley.backbone.packing import Rows, hidden_states, pack
from entropy_valley.decoding.variable_length.base import GrowingCanvas, Guess
from entropy_valley.engine.entropy import slot_values
from entropy_valley.engine.queue import Filled

if TYPE_CHECKING:
    from entropy_valley.decoding.variable_length.base import Slots, VariableLengthDecoder
    from entropy_valley.engine.engine import Engine
    from entropy_valley.engine.reading import Reading


@dataclass(frozen=True)
class Grown(Filled):
    """A filled canvas of its final length; ``slots`` are summed over all its passes, ``rows`` the masked among them."""

    slots: int
    rows: int


@dataclass
class _Growth:
    """A canvas on its way: its slots now, and what its passes were over."""

    name: Any
    canvas: GrowingCanvas
    slots: Slots = field(init=False)
    passes: int = 0
    run: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        self.slots = [None] * self.canvas.length

    @property
    def size(self) -> int:
        """Tokens of prompt and canvas."""
        return len(self.canvas.prompt) + len(self.slots)

    @property
    def masked(self) -> int:
        return self.slots.count(None)

    def tokens(self, mask_id: int) -> list[int]:
        return [mask_id if slot is None else slot.token for slot in self.slots]

    def advance(self, guesses: Iterator[Guess], decoder: VariableLengthDecoder, eos_id: int) -> None:
        """One pass, from a guess for each masked slot."""
        self.run += len(self.slots)
        self.rows += self.masked
        seen = [next(guesses) if slot is None else slot for slot in self.slots]
        self.slots = decoder.advance(seen, eos_id, self.passes, self.canvas.most)
        self.passes += 1

    def grown(self, eos_id: int) -> Grown:
        tokens = [slot.token for slot in self.slots]
        text = tokens.index(eos_id) if eos_id in tokens else len(tokens)
        mean = round(math.fsum(slot.logprob for slot in self.slots[:text]) / text, 4) if text else None
        return Grown(tokens, text, mean, self.passes, self.run, self.rows)


class _Pass(list):
    """The canvases of one pass."""

    @property
    def cost(self) -> int:
        return sum(growth.size for growth in self)


@torch.inference_mode()
def grow(
    engine: Engine, named: Iterable[tuple[Any, GrowingCanvas]], decoder: VariableLengthDecoder
) -> Iterator[tuple[Any, Grown]]:
    """(name, result) of each canvas as soon as it is filled, under the engine's backbone, token budget and ledger."""
    eos = engine.backbone.eos_id
    waiting = deque(_Growth(name, canvas) for name, canvas in named)
    known = [growth for growth in waiting if growth.canvas.start]
    for growth in known:
        growth.advance(_known(growth.canvas.start), decoder, eos)
    yield from ((growth.name, growth.grown(eos)) for growth in known if not growth.masked)
    waiting = deque(growth for growth in waiting if growth.masked)
    while waiting:
        together = _next(waiting, engine.budget)
        guesses = engine.attempt(together, lambda batch: _read(engine, batch))
        for growth in together if guesses is not None else ():
            growth.advance(guesses, decoder, eos)
        waiting.extendleft(growth for growth in reversed(together) if growth.masked)
        yield from ((growth.name, growth.grown(eos)) for growth in together if not growth.masked)


def _next(waiting: deque[_Growth], budget: int) -> _Pass:
    """Take the first canvases, as far as the budget goes; at least one."""
    together = _Pass([waiting.popleft()])
    while waiting and together.cost + waiting[0].size <= budget:
        together.append(waiting.popleft())
    return together


def _read(engine: Engine, batch: _Pass) -> Iterator[Guess]:
    """One forward pass: a guess for each masked slot, canvas by canvas."""
    backbone = engine.backbone
    packed = pack([[*growth.canvas.prompt, *growth.tokens(backbone.mask_id)] for growth in batch], backbone.device)
    starts = itertools.accumulate((growth.size for growth in batch), initial=0)
    places = [
        start + len(growth.canvas.prompt) + slot
        for start, growth in zip(starts, batch, strict=False)
        for slot, one in enumerate(growth.slots)
        if one is None
    ]
    # A shifted family predicts the next position: slot i is read from row i - 1, slot 0 from the prompt's last.
    rows = torch.tensor(places, device=backbone.device) - int(backbone.shifted)
    states = hidden_states(backbone.model, packed, Rows(rows, tuple(growth.masked for growth in batch)))
    values = slot_values(backbone.model.lm_head, states, backbone.mask_id, backbone.eos_id)
    engine.ledger.count(passes=1, tokens=batch.cost, rows=len(places))
    return map(Guess, values.token.tolist(), values.logprob.tolist(), values.eos.tolist())


def _known(reading: Reading) -> Iterator[Guess]:
    return map(Guess, reading.tokens, reading.logprobs, reading.eos_logprobs)
