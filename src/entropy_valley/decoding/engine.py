"""The exact decoder: many canvases in one pass, none padded, each giving what the plain algorithm gives.

Against Algorithm 1 run sentence by sentence it saves: steps that reveal nothing; the all-mask pass, where a probe
has it; the LM head on revealed and prompt rows; the full softmax; and what follows once the text is settled. A
canvas leaves as soon as it is done and the next one enters. On one CPU thread in float32 a canvas's result is
bit-equal in any company, so a killed job that is run again gives the same file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import torch

from entropy_valley.backbone.packing import hidden_states
from entropy_valley.canvas.reading import Reading
from entropy_valley.decoding.entropy import SlotValues, slot_values
from entropy_valley.decoding.ledger import Ledger
from entropy_valley.decoding.rows import Batch
from entropy_valley.decoding.tasks import Canvas, Filled

if TYPE_CHECKING:
    from entropy_valley.backbone.loading import Backbone
    from entropy_valley.decoding.orders.base import Order

_BUDGET = {"cpu": 1024, "cuda": 16384}


class Engine:
    """Runs canvases on a frozen backbone, at most ``budget`` tokens a pass (a longer canvas runs alone)."""

    def __init__(self, backbone: Backbone, ledger: Ledger | None = None, budget: int | None = None) -> None:
        self._backbone, self.ledger = backbone, ledger or Ledger()
        self._budget = budget or _BUDGET[backbone.device.type]

    @torch.inference_mode()
    def probe(self, canvases: Sequence[Canvas]) -> Iterator[tuple[int, Reading]]:
        """(place, reading of the all-mask canvas) of each, the longest first."""
        queue = _queue(canvases)
        while queue:
            batch = self._next(queue, canvases)
            columns = [column.tolist() for column in self._read(batch)]
            start = 0
            for place, canvas in zip(batch.places, batch.canvases, strict=True):
                stop = start + canvas.length
                yield place, Reading(*(tuple(column[start:stop]) for column in columns))
                start = stop

    @torch.inference_mode()
    def fill(self, canvases: Sequence[Canvas], order: Order) -> Iterator[tuple[int, Filled]]:
        """(place, decoded canvas) of each, as soon as its text is settled."""
        queue, batch = _queue(canvases), self._batch([], canvases)
        while queue or len(batch):
            self._enter(batch, queue, canvases, order)
            yield from batch.release(self._backbone.eos_id)  # a stored first step may have settled it
            if len(batch):
                batch.reveal(self._read(batch), order)
                yield from batch.release(self._backbone.eos_id)

    def _enter(self, batch: Batch, queue: deque[int], canvases: Sequence[Canvas], order: Order) -> None:
        entering = self._next(queue, canvases, batch.size)
        known = [place for place in entering.places if canvases[place].start is not None]
        started = self._batch(known, canvases)
        if known:
            started.reveal(_stored(started.canvases, batch.ids.device), order)
            batch.join(started)
            entering = self._batch([place for place in entering.places if canvases[place].start is None], canvases)
        batch.join(entering)

    def _next(self, queue: deque[int], canvases: Sequence[Canvas], used: int = 0) -> Batch:
        """The head of the queue, as far as the budget goes; at least one canvas where nothing is used yet."""
        places: list[int] = []
        while queue and (used == 0 or used + canvases[queue[0]].size <= self._budget):
            used += canvases[queue[0]].size
            places.append(queue.popleft())
        return self._batch(places, canvases)

    def _batch(self, places: Sequence[int], canvases: Sequence[Canvas]) -> Batch:
        backbone = self._backbone
        return Batch(places, [canvases[place] for place in places], backbone.mask_id, backbone.device)

    def _read(self, batch: Batch) -> SlotValues:
        """One forward pass, and the head on the rows that speak for the masked slots."""
        backbone, masked = self._backbone, batch.masked()
        states = hidden_states(backbone.model, batch.packed())
        self.ledger.count(passes=1, tokens=batch.size, rows=len(masked))
        # A shifted family predicts the next position: slot i is read from row i - 1, slot 0 from the prompt's last.
        return slot_values(backbone.model.lm_head, states[masked - int(backbone.shifted)], backbone.mask_id)


def _queue(canvases: Sequence[Canvas]) -> deque[int]:
    """Places, those with a stored first step first, then the longest: neighbours of one size share attention calls."""
    return deque(sorted(range(len(canvases)), key=lambda place: (canvases[place].start is None, -canvases[place].size)))


def _stored(canvases: Sequence[Canvas], device: torch.device) -> SlotValues:
    starts = [canvas.start for canvas in canvases]
    return SlotValues(
        torch.tensor(list(chain.from_iterable(start.tokens for start in starts)), device=device),
        torch.tensor(
            list(chain.from_iterable(start.entropies for start in starts)), dtype=torch.float64, device=device
        ),
        torch.tensor(list(chain.from_iterable(start.logprobs for start in starts)), dtype=torch.float64, device=device),
    )
