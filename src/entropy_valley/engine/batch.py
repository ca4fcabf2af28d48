"""The rows of a pass: canvases at different steps laid end to end, and what happens to them without a host loop."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import torch

from entropy_valley.backbone.packing import Packed, Rows
from entropy_valley.engine.entropy import SlotValues
from entropy_valley.engine.order import Slots, needs_sourceless
from entropy_valley.engine.queue import Canvas, Filled
from entropy_valley.engine.reading import Reading

if TYPE_CHECKING:
    from entropy_valley.engine.order import Order

_NEVER = 2**31 - 1
_PER_CANVAS, _PER_ROW = ("names", "canvases", "steps"), ("ids", "position", "slot", "logprob")


class Batch:
    """Canvases packed without padding; per row: token id, place in its sequence, slot (< 0: prompt), its logprob."""

    def __init__(self, named: Sequence[tuple[Any, Canvas]], mask_id: int, device: torch.device) -> None:
        self.names, self.canvases, self.mask_id = [name for name, _ in named], [canvas for _, canvas in named], mask_id
        self.steps = [0] * len(named)
        ids = [token for canvas in self.canvases for token in (*canvas.prompt, *[mask_id] * canvas.length)]
        self.ids = torch.tensor(ids, dtype=torch.int64, device=device)
        positions = [place for canvas in self.canvases for place in range(canvas.size)]
        self.position = torch.tensor(positions, dtype=torch.int64, device=device)
        prompts = torch.tensor([len(canvas.prompt) for canvas in self.canvases], dtype=torch.int64, device=device)
        self.slot = self.position - prompts[self.canvas]
        self.logprob = torch.zeros(len(ids), dtype=torch.float64, device=device)

    def __len__(self) -> int:
        return len(self.canvases)

    @property
    def size(self) -> int:
        """Rows of a pass, twins apart."""
        return self.ids.shape[0]

    @property
    def cost(self) -> int:
        """The most rows that a pass takes, twins and all."""
        return sum(canvas.cost for canvas in self.canvases)

    @property
    def canvas(self) -> torch.Tensor:
        """The canvas of each row."""
        sizes = torch.tensor([canvas.size for canvas in self.canvases], dtype=torch.int64, device=self.ids.device)
        return torch.arange(len(self), device=self.ids.device).repeat_interleave(sizes, output_size=self.size)

    def packed(self) -> Packed:
        """The rows as the model's input."""
        return Packed(self.ids[None], self.position[None], tuple(canvas.size for canvas in self.canvases))

    def masked(self) -> Rows:
        """The rows that are masked slots."""
        places = ((self.ids == self.mask_id) & (self.slot >= 0)).nonzero().squeeze(1)
        known = zip(self.canvases, self.steps, strict=True)
        return Rows(places, tuple(canvas.length - sum(canvas.counts[:step]) for canvas, step in known))

    def of_masked(self, flags: Sequence[bool]) -> torch.Tensor:
        """Each canvas's flag for each of its masked slots."""
        return torch.tensor(flags, device=self.ids.device)[self.canvas[self.masked().places]]

    def wants_sourceless(self, order: Order | None) -> list[bool]:
        """The canvases that are now compared with their twin, which has no source; of those only to be read, all that
        have one."""
        known = zip(self.canvases, self.steps, strict=True)
        return [
            needs_sourceless(order, step, len(canvas.counts)) if canvas.counts else canvas.sourceless is not None
            for canvas, step in known
        ]

    def with_sourceless(self, flags: Sequence[bool]) -> Self:
        """These canvases and behind them the twins of those flagged: as far revealed, without the source."""
        chosen = list(itertools.compress(zip(self.names, self.canvases, self.steps, strict=True), flags))
        twins = [(name, dataclasses.replace(canvas, prompt=canvas.sourceless)) for name, canvas, _ in chosen]
        twin, whole = type(self)(twins, self.mask_id, self.ids.device), copy.copy(self)
        twin.steps = [step for *_, step in chosen]
        flagged = torch.tensor(flags, device=self.ids.device)[self.canvas]
        twin.ids[twin.slot >= 0] = self.ids[flagged & (self.slot >= 0)]
        whole.join(twin)
        return whole

    def advance(
        self, values: SlotValues, order: Order | None, sig: torch.Tensor | None = None
    ) -> list[tuple[Any, Reading]]:
        """One step from what the masked slots say; the canvases that were only to be read leave with their reading."""
        probes = [not canvas.counts for canvas in self.canvases]
        readings = []
        if any(probes):
            read = self.of_masked(probes)
            seen = SlotValues(*(column[read] for column in values))
            readings = self.take(probes)._readings(seen, None if sig is None else sig[read])
            values = SlotValues(*(column[~read] for column in values))
            sig = None if sig is None else sig[~read]
        if len(self):
            self._reveal(values, order, sig)
        return readings

    def _readings(self, values: SlotValues, sig: torch.Tensor | None) -> list[tuple[Any, Reading]]:
        columns, sigs = [column.tolist() for column in values], [] if sig is None else sig.tolist()
        stops = itertools.accumulate((canvas.length for canvas in self.canvases), initial=0)
        readings = []
        for name, canvas, (start, stop) in zip(self.names, self.canvases, itertools.pairwise(stops), strict=True):
            compared = () if canvas.sourceless is None else tuple(sigs[start:stop])
            readings.append((name, Reading(*(tuple(column[start:stop]) for column in columns), compared)))
        return readings

    def _reveal(self, values: SlotValues, order: Order, sig: torch.Tensor | None) -> None:
        """Of each canvas its next count of lowest-scored slots takes their most probable tokens."""
        masked, device = self.masked().places, self.ids.device
        canvas = self.canvas[masked]
        slots = Slots(self.canvases, canvas, self.slot[masked], torch.tensor(self.steps, device=device), values, sig)
        counts = [canvas.counts[step] for canvas, step in zip(self.canvases, self.steps, strict=True)]
        chosen = lowest(order.scores(slots), canvas, torch.tensor(counts, device=device))
        self.ids[masked[chosen]] = values.token[chosen]
        self.logprob[masked[chosen]] = values.logprob[chosen]
        self.steps = [step + 1 for step in self.steps]

    def join(self, other: Self) -> None:
        """Take over the canvases of another batch, behind one's own."""
        for name in _PER_CANVAS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _PER_ROW:
            setattr(self, name, torch.cat([getattr(self, name), getattr(other, name)]))

    def take(self, flags: Sequence[bool]) -> Self:
        """Remove the flagged canvases and return them."""
        taken, gone = copy.copy(self), torch.tensor(flags, dtype=torch.bool, device=self.ids.device)[self.canvas]
        for name in _PER_CANVAS:
            values = list(zip(getattr(self, name), flags, strict=True))
            setattr(taken, name, [value for value, flag in values if flag])
            setattr(self, name, [value for value, flag in values if not flag])
        for name in _PER_ROW:
            values = getattr(self, name)
            setattr(taken, name, values[gone])
            setattr(self, name, values[~gone])
        return taken

    def take_beyond(self, budget: int) -> Self:
        """Remove and return what exceeds ``budget`` rows; the first canvas stays."""
        costs = itertools.accumulate(canvas.cost for canvas in self.canvases)
        return self.take([place > 0 and cost > budget for place, cost in enumerate(costs)])

    def release(self, eos_id: int) -> list[tuple[Any, Filled]]:
        """Remove the canvases whose text is settled and return them: an EOS, or the end, with no mask before it."""
        first_mask, first_eos = self._first(self.mask_id), self._first(eos_id)
        flags = ((first_eos < first_mask) | (first_mask == _NEVER)).tolist()
        if not any(flags):
            return []
        ends = list(itertools.compress(first_eos.tolist(), flags))
        return self.take(flags)._filled(ends)

    def _first(self, token: int) -> torch.Tensor:
        """The first slot of each canvas that holds ``token``."""
        slots = torch.where((self.ids == token) & (self.slot >= 0), self.slot, _NEVER)
        return slots.new_full((len(self),), _NEVER).scatter_reduce(0, self.canvas, slots, "amin")

    def _filled(self, ends: list[int]) -> list[tuple[Any, Filled]]:
        """The results of these canvases, the first EOS of each at slot ``ends`` or nowhere."""
        in_canvas = self.slot >= 0
        tokens, logprobs = self.ids[in_canvas].tolist(), self.logprob[in_canvas].tolist()
        done, start = [], 0
        for name, canvas, steps, end in zip(self.names, self.canvases, self.steps, ends, strict=True):
            text, stop = min(end, canvas.length), start + canvas.length
            mean = round(math.fsum(logprobs[start : start + text]) / text, 4) if text else None
            done.append((name, Filled(tokens[start:stop], text, mean, steps)))
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
