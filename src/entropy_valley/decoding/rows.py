"""The rows of a pass: canvases at different steps laid end to end, and what happens to them without a host loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import torch

from entropy_valley.backbone.packing import Packed
from entropy_valley.decoding.orders.base import Slots
from entropy_valley.decoding.tasks import Canvas, Filled

if TYPE_CHECKING:
    from entropy_valley.decoding.entropy import SlotValues
    from entropy_valley.decoding.orders.base import Order

_NEVER = 2**31 - 1


class Batch:
    """Canvases packed without padding; per row: token id, place in its sequence, canvas and slot (< 0: prompt)."""

    def __init__(self, places: Sequence[int], canvases: Sequence[Canvas], mask_id: int, device: torch.device) -> None:
        self.places, self.canvases, self.mask_id = list(places), list(canvases), mask_id
        self.steps = [0] * len(self.canvases)
        ids = [token for canvas in self.canvases for token in (*canvas.prompt, *[mask_id] * canvas.length)]
        slots = [slot for canvas in self.canvases for slot in range(-len(canvas.prompt), canvas.length)]
        self.ids = torch.tensor(ids, dtype=torch.int64, device=device)
        self.slot = torch.tensor(slots, dtype=torch.int64, device=device)
        self.logprob = torch.zeros(len(ids), dtype=torch.float64, device=device)

    def __len__(self) -> int:
        return len(self.canvases)

    @property
    def size(self) -> int:
        """Rows of a pass."""
        return self.ids.shape[0]

    @property
    def canvas(self) -> torch.Tensor:
        """The canvas of each row."""
        sizes = torch.tensor([canvas.size for canvas in self.canvases], dtype=torch.int64, device=self.ids.device)
        return torch.arange(len(self), device=self.ids.device).repeat_interleave(sizes, output_size=self.size)

    def packed(self) -> Packed:
        """The rows as the model's input."""
        lengths = tuple(canvas.size for canvas in self.canvases)
        positions = torch.cat([torch.arange(length) for length in lengths]).to(self.ids.device)
        return Packed(self.ids[None], positions[None], lengths, (0, *itertools.accumulate(lengths))[:-1])

    def masked(self) -> torch.Tensor:
        """The rows that are masked slots."""
        return ((self.ids == self.mask_id) & (self.slot >= 0)).nonzero().squeeze(1)

    def reveal(self, values: SlotValues, order: Order) -> None:
        """One step of every canvas: its next count of lowest-scored slots takes their most probable tokens."""
        masked, device = self.masked(), self.ids.device
        canvas = self.canvas[masked]
        slots = Slots(self.canvases, canvas, self.slot[masked], torch.tensor(self.steps, device=device), values)
        counts = [canvas.counts[step] for canvas, step in zip(self.canvases, self.steps, strict=True)]
        chosen = lowest(order.scores(slots), canvas, torch.tensor(counts, device=device))
        self.ids[masked[chosen]] = values.token[chosen]
        self.logprob[masked[chosen]] = values.logprob[chosen]
        self.steps = [step + 1 for step in self.steps]

    def join(self, other: Self) -> None:
        """Take over the canvases of another batch, behind one's own."""
        for name in ("places", "canvases", "steps"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("ids", "slot", "logprob"):
            setattr(self, name, torch.cat([getattr(self, name), getattr(other, name)]))

    def release(self, eos_id: int) -> list[tuple[int, Filled]]:
        """Remove the canvases whose text is settled and return them: an EOS, or the end, with no mask before it."""
        canvas, slot = self.canvas, self.slot
        first_mask = self._first(canvas, self.ids == self.mask_id)
        first_eos = self._first(canvas, self.ids == eos_id)
        settled = (first_eos < first_mask) | (first_mask == _NEVER)
        if not any(flags := settled.tolist()):
            return []
        leaving = settled[canvas]
        gone = leaving & (slot >= 0)
        done = self._filled(flags, self.ids[gone].tolist(), self.logprob[gone].tolist(), first_eos.tolist())
        self.ids, self.slot, self.logprob = self.ids[~leaving], slot[~leaving], self.logprob[~leaving]
        for name in ("places", "canvases", "steps"):
            setattr(self, name, [value for value, flag in zip(getattr(self, name), flags, strict=True) if not flag])
        return done

    def _first(self, canvas: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """The first slot of each canvas where ``wanted`` is true."""
        slots = torch.where(wanted & (self.slot >= 0), self.slot, _NEVER)
        return slots.new_full((len(self),), _NEVER).scatter_reduce(0, canvas, slots, "amin")

    def _filled(
        self, flags: list[bool], tokens: list[int], logprobs: list[float], ends: list[int]
    ) -> list[tuple[int, Filled]]:
        done, start = [], 0
        for index in itertools.compress(range(len(self)), flags):
            length = self.canvases[index].length
            text, stop = min(ends[index], length), start + length
            mean = round(math.fsum(logprobs[start : start + text]) / text, 4) if text else None
            done.append((self.places[index], Filled(tokens[start:stop], text, mean, self.steps[index])))
            start = stop
        return done


def lowest(scores: torch.Tensor, canvas: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Places of the ``counts[c]`` lowest scores of each canvas c; equal scores go in the order they stand.

    ``canvas`` ascends. Two stable sorts: by score, then by canvas.
    """
    by_score = scores.argsort(stable=True)
    ranked = by_score[canvas[by_score].argsort(stable=True)]
    sizes = torch.bincount(canvas, minlength=len(counts))
    rank = torch.arange(len(scores), device=scores.device) - (sizes.cumsum(0) - sizes)[canvas]
    return ranked[rank < counts[canvas]]
