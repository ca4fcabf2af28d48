"""The canvases of a pass, their rows laid end to end, and what happens to them without a loop over the rows."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from entropy_valley.backbone.packing import Packed, Rows
from entropy_valley.engine.entropy import SlotValues
from entropy_valley.engine.order import Slots, needs_sourceless
from entropy_valley.engine.queue import Canvas, Decoded
from entropy_valley.engine.reading import Reading

if TYPE_CHECKING:
    from entropy_valley.engine.order import Order

_NEVER = 2**31 - 1
_PER_CANVAS, _PER_ROW = ("names", "canvases", "steps", "masks"), ("ids", "position", "slot", "logprob")


class Pass(NamedTuple):
    """What a forward pass says of a batch: ``places`` of its masked rows, ascending, and for each its values and its
    SIG (nats, float64; NaN where it is not wanted), None where no canvas wants it."""

    places: torch.Tensor
    values: SlotValues
    sig: torch.Tensor | None = None

    def among(self, flags: torch.Tensor) -> Pass:
        """What it says of the flagged ones of the masked rows."""
        chosen = flags.nonzero().squeeze(1)
        values = SlotValues(*(column[chosen] for column in self.values))
        return Pass(self.places[chosen], values, None if self.sig is None else self.sig[chosen])


@dataclass
class Batch:
    """Canvases packed without padding.

    Per canvas: ``names``, ``canvases``, revealing ``steps`` done and ``masks`` left. Per row: token id, index of its
    ``canvas``, place in its sequence, slot (< 0: prompt), log-probability in the pass that revealed it (float64).
    """

    mask_id: int
    names: list[Any]
    canvases: list[Canvas]
    steps: list[int]
    masks: list[int]
    ids: torch.Tensor
    canvas: torch.Tensor
    position: torch.Tensor
    slot: torch.Tensor
    logprob: torch.Tensor

    @classmethod
    def of(cls, named: Sequence[tuple[Any, Canvas]], mask_id: int, device: torch.device) -> Self:
        """The canvases as they enter the engine."""
        names, canvases = [name for name, _ in named], [canvas for _, canvas in named]
        filled = [canvas.tokens or [mask_id] * canvas.length for canvas in canvases]
        ids = [token for canvas, tokens in zip(canvases, filled, strict=True) for token in (*canvas.prompt, *tokens)]
        places = [place for canvas in canvases for place in range(canvas.size)]
        prompts, sizes = [len(canvas.prompt) for canvas in canvases], [canvas.size for canvas in canvases]
        ids, position, prompts, sizes = (
            torch.tensor(column, dtype=torch.int64, device=device) for column in (ids, places, prompts, sizes)
        )
        canvas = torch.arange(len(names), device=device).repeat_interleave(sizes, output_size=len(places))
        masks, logprob = [list(tokens).count(mask_id) for tokens in filled], torch.zeros_like(ids, dtype=torch.float64)
        rows = (ids, canvas, position, position - prompts[canvas], logprob)
        return cls(mask_id, names, canvases, [0] * len(names), masks, *rows)

    def __len__(self) -> int:
        return len(self.canvases)

    @property
    def size(self) -> int:
        """Rows of a pass, those without the source apart."""
        return self.ids.shape[0]

    @property
    def cost(self) -> int:
        """The most rows that a pass takes, those without the source included."""
        return sum(canvas.cost for canvas in self.canvases)

    def select(self, flags: Sequence[bool]) -> Self:
        """The flagged canvases alone."""
        chosen = torch.tensor(flags, dtype=torch.bool, device=self.ids.device)
        rows = chosen[self.canvas].nonzero().squeeze(1)
        per_canvas = {name: list(itertools.compress(getattr(self, name), flags)) for name in _PER_CANVAS}
        per_row = {name: getattr(self, name)[rows] for name in _PER_ROW}
        return type(self)(self.mask_id, **per_canvas, **per_row, canvas=(chosen.cumsum(0) - 1)[self.canvas[rows]])

    def split(self, flags: Sequence[bool]) -> tuple[Self, Self]:
        """The flagged canvases, and the others."""
        if not any(flags):
            return self.select(flags), self
        return self.select(flags), self.select([not flag for flag in flags])

    def cat(self, other: Self) -> Self:
        """These canvases, and behind them those of another batch."""
        if not len(self) or not len(other):
            return self if len(self) else other
        per_canvas = {name: getattr(self, name) + getattr(other, name) for name in _PER_CANVAS}
        per_row = {name: torch.cat([getattr(self, name), getattr(other, name)]) for name in _PER_ROW}
        canvas = torch.cat([self.canvas, other.canvas + len(self)])
        return type(self)(self.mask_id, **per_canvas, **per_row, canvas=canvas)

    def within(self, budget: int) -> tuple[Self, Self]:
        """The first canvases that take at most ``budget`` rows, at least one of them, and the others."""
        costs = itertools.accumulate(canvas.cost for canvas in self.canvases)
        return self.split([place == 0 or cost <= budget for place, cost in enumerate(costs)])

    def packed(self) -> Packed:
        """The rows as the model's input."""
        return Packed(self.ids[None], self.position[None], tuple(canvas.size for canvas in self.canvases))

    def masked(self) -> Rows:
        """The rows that are masked slots."""
        places = ((self.ids == self.mask_id) & (self.slot >= 0)).nonzero().squeeze(1)
        return Rows(places, tuple(self.masks))

    def wants_sourceless(self, order: Order | None) -> list[bool]:
        """The canvases whose SIG is wanted now, by the order; of those only to be read, all that have a prompt without
        the source."""
        return [
            needs_sourceless(order, step, len(canvas.counts)) if canvas.counts else canvas.sourceless is not None
            for canvas, step in zip(self.canvases, self.steps, strict=True)
        ]

    def sourceless(self) -> Self:
        """The same canvases, as far revealed, each behind its prompt without the source."""
        canvases = [dataclasses.replace(canvas, prompt=canvas.sourceless) for canvas in self.canvases]
        without = self.of(list(zip(self.names, canvases, strict=True)), self.mask_id, self.ids.device)
        without.ids[without.slot >= 0] = self.ids[self.slot >= 0]
        return dataclasses.replace(without, steps=self.steps, masks=self.masks)

    def advance(self, seen: Pass, order: Order | None) -> tuple[Self, list[tuple[Any, Reading]]]:
        """One step of each canvas; those that were only to be read are not in the new batch, but in the list."""
        finished = [not canvas.counts for canvas in self.canvases]
        if not any(finished):
            self._reveal(seen, order)
            return self, []
        flags = torch.tensor(finished, device=self.ids.device)[self.canvas]
        read, rest = self.split(finished)
        readings = read._readings(seen.among(flags[seen.places]))
        if len(rest):
            left = seen.among(~flags[seen.places])
            rest._reveal(left._replace(places=((~flags).cumsum(0) - 1)[left.places]), order)
        return rest, readings

    def _readings(self, seen: Pass) -> list[tuple[Any, Reading]]:
        columns, sigs = [column.tolist() for column in seen.values], [] if seen.sig is None else seen.sig.tolist()
        stops = itertools.accumulate(self.masks, initial=0)
        readings = []
        for name, canvas, (start, stop) in zip(self.names, self.canvases, itertools.pairwise(stops), strict=True):
            compared = () if canvas.sourceless is None else tuple(sigs[start:stop])
            readings.append((name, Reading(*(tuple(column[start:stop]) for column in columns), compared)))
        return readings

    def _reveal(self, seen: Pass, order: Order) -> None:
        """In place: of each canvas its next count of lowest-scored slots take their most probable tokens."""
        places, device = seen.places, self.ids.device
        canvas, steps = self.canvas[places], torch.tensor(self.steps, device=device)
        counts = [canvas.counts[step] for canvas, step in zip(self.canvases, self.steps, strict=True)]
        scores = order.scores(Slots(self.canvases, canvas, self.slot[places], steps, seen.values, seen.sig))
        chosen = lowest(scores, canvas, torch.tensor(counts, device=device))
        self.ids[places[chosen]] = seen.values.token[chosen]
        self.logprob[places[chosen]] = seen.values.logprob[chosen]
        self.steps = [step + 1 for step in self.steps]
        self.masks = [masks - count for masks, count in zip(self.masks, counts, strict=True)]

    def release(self, eos_id: int) -> tuple[Self, list[tuple[Any, Decoded]]]:
        """The canvases that go on, and the results of those whose text is settled: an EOS, or the end, with no mask
        before it."""
        first_mask, first_eos = self._first(self.mask_id), self._first(eos_id)
        flags = ((first_eos < first_mask) | (first_mask == _NEVER)).tolist()
        if not any(flags):
            return self, []
        settled, rest = self.split(flags)
        return rest, settled._decoded(list(itertools.compress(first_eos.tolist(), flags)))

    def _first(self, token: int) -> torch.Tensor:
        """The first slot of each canvas that holds ``token``."""
        slots = torch.where((self.ids == token) & (self.slot >= 0), self.slot, _NEVER)
        return slots.new_full((len(self),), _NEVER).scatter_reduce(0, self.canvas, slots, "amin")

    def _decoded(self, ends: list[int]) -> list[tuple[Any, Decoded]]:
        """The results of these canvases, the first EOS of each at slot ``ends`` or nowhere."""
        in_canvas = self.slot >= 0
        tokens, logprobs = self.ids[in_canvas].tolist(), self.logprob[in_canvas].tolist()
        done, start = [], 0
        for name, canvas, steps, end in zip(self.names, self.canvases, self.steps, ends, strict=True):
            text, stop = min(end, canvas.length), start + canvas.length
            mean = round(math.fsum(logprobs[start : start + text]) / text, 4) if text else None
            done.append((name, Decoded(tokens[start:stop], text, mean, steps)))
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
