"""The canvases of a pass, their rows laid end to end, and what happens to them, without a loop over the rows.

All of this lies in the host's memory: which canvases leave after a pass is decided there anyway. A pass takes what it
needs to the device in one copy, and brings its values back in another.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from entropy_valley.decoding.head import SlotValues
from entropy_valley.decoding.orders import Slots, needs_sourceless, not_a_number, scored
from entropy_valley.decoding.requests import Canvas, Decoded, Reading
from entropy_valley.model.attention import download, upload

if TYPE_CHECKING:
    import torch

    from entropy_valley.decoding.orders import Order


_NEVER = 2**31 - 1

_PER_CANVAS, _PER_ROW = ("names", "canvases", "steps", "masks", "kept"), ("ids", "position", "slot", "logprob")


class Pass(NamedTuple):
    """What a forward pass says of a batch: ``places`` of its masked rows, ascending, and for each, on the device, its
    values and its SIG (nats, float64; NaN where it is not wanted), None where no canvas wants it."""

    places: np.ndarray
    values: SlotValues
    sig: torch.Tensor | None = None


@dataclass
class Batch:
    """Canvases packed without padding.

    Per canvas: ``names``, ``canvases``, revealing ``steps`` done, ``masks`` left, and where the rows of its prompts are
    ``kept`` for it alone (see :mod:`.prompts`). Per row: token id, index of its ``canvas``, place in its sequence, slot
    (< 0: prompt), log-probability in the pass that revealed it (float64).
    """

    mask_id: int
    names: list[Any]
    canvases: list[Canvas]
    steps: list[int]
    masks: list[int]
    kept: list[dict[Any, np.ndarray]]
    ids: np.ndarray
    canvas: np.ndarray
    position: np.ndarray
    slot: np.ndarray
    logprob: np.ndarray

    @classmethod
    def of(cls, named: Sequence[tuple[Any, Canvas]], mask_id: int) -> Self:
        """The canvases as they enter the engine."""
        names, canvases = [name for name, _ in named], [canvas for _, canvas in named]
        filled = [canvas.tokens or [mask_id] * canvas.length for canvas in canvases]
        ids = _integers(
            token for canvas, slots in zip(canvases, filled, strict=True) for token in (*canvas.prompt, *slots)
        )
        prompts, sizes = _integers(len(canvas.prompt) for canvas in canvases), _integers(c.size for c in canvases)
        canvas = np.repeat(np.arange(len(names)), sizes)
        position = np.arange(len(ids)) - (np.cumsum(sizes) - sizes)[canvas]
        masks = [list(tokens).count(mask_id) for tokens in filled]
        rows = (ids, canvas, position, position - prompts[canvas], np.zeros(len(ids)))
        return cls(mask_id, names, canvases, [0] * len(names), masks, [{} for _ in names], *rows)

    def __len__(self) -> int:
        return len(self.canvases)

    @property
    def size(self) -> int:
        """Rows of a pass, those without the source apart."""
        return len(self.ids)

    def select(self, flags: Sequence[bool]) -> Self:
        """The flagged canvases alone."""
        chosen = np.array(flags, dtype=bool)
        rows = chosen[self.canvas]
        per_canvas = {name: list(itertools.compress(getattr(self, name), flags)) for name in _PER_CANVAS}
        per_row = {name: getattr(self, name)[rows] for name in _PER_ROW}
        return type(self)(self.mask_id, **per_canvas, **per_row, canvas=(np.cumsum(chosen) - 1)[self.canvas[rows]])

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
        per_row = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _PER_ROW}
        canvas = np.concatenate([self.canvas, other.canvas + len(self)])
        return type(self)(self.mask_id, **per_canvas, **per_row, canvas=canvas)

    def masked(self) -> np.ndarray:
        """The places of the rows that are masked slots, ascending."""
        return np.flatnonzero((self.ids == self.mask_id) & (self.slot >= 0))

    def wants_sourceless(self, order: Order | None) -> list[bool]:
        """The canvases whose SIG is wanted now, by the order; of those only to be read, all that have a prompt without
        the source."""
        guided = hasattr(order, "needs_sourceless")
        return [
            guided and needs_sourceless(order, step, len(canvas.counts))
            if canvas.counts
            else canvas.sourceless is not None
            for canvas, step in zip(self.canvases, self.steps, strict=True)
        ]

    def sourceless(self) -> Self:
        """The same canvases, as far revealed, each behind its prompt without the source."""
        canvases = [dataclasses.replace(canvas, prompt=canvas.sourceless) for canvas in self.canvases]
        without = self.of(list(zip(self.names, canvases, strict=True)), self.mask_id)
        without.ids[without.slot >= 0] = self.ids[self.slot >= 0]
        return dataclasses.replace(without, steps=self.steps, masks=self.masks, kept=self.kept)

    def advance(self, seen: Pass, order: Order | None) -> tuple[Self, list[tuple[Any, Reading]]]:
        """One step of each canvas; those that were only to be read are not in the new batch, but in the list."""
        reads = [not canvas.counts for canvas in self.canvases]
        read = np.array(reads)[self.canvas[seen.places]]
        scores = [] if all(reads) else [self._scores(seen, np.flatnonzero(~read), order)]
        values = [*seen.values, *([] if seen.sig is None else [seen.sig])]
        columns = download([*values, *scores])
        self._require_numbers(seen.places, columns[1], None)
        if scores:
            tokens, _, logprobs, *_ = (column[~read] for column in columns[: len(values)])
            self._require_numbers(seen.places[~read], columns[-1], order)
            self._reveal(seen.places[~read], columns.pop(), tokens, logprobs)
        if not any(reads):
            return self, []
        leaving, rest = self.split(reads)
        return rest, leaving._readings([column[read] for column in columns])

    def _scores(self, seen: Pass, chosen: np.ndarray, order: Order) -> torch.Tensor:
        """What the order says of the ``chosen`` ones of the masked rows: those of all canvases that it reveals."""
        places, reveals = seen.places[chosen], [bool(canvas.counts) for canvas in self.canvases]
        canvases, steps = (list(itertools.compress(column, reveals)) for column in (self.canvases, self.steps))
        canvas = (np.cumsum(reveals) - 1)[self.canvas[places]]
        columns = [chosen, canvas, self.slot[places], _integers(steps)]
        rows, *columns = upload(columns, seen.values.entropy.device)
        values, sig = seen.values, seen.sig
        if len(canvases) < len(self):
            values = SlotValues(*(column[rows] for column in values))
            sig = None if sig is None else sig[rows]
        if canvases[0].sigs:  # of all canvases or of none: they share the order
            first = np.cumsum([0, *(one.length for one in canvases)])
            sigs = np.concatenate([one.sigs for one in canvases])[first[canvas] + self.slot[places]]
            (sig,) = upload([sigs], seen.values.entropy.device)
        return scored(order, Slots(canvases, *columns, values, sig))

    def _require_numbers(self, places: np.ndarray, column: np.ndarray, order: Order | None) -> None:
        """Raise InputError where a number is NaN: of an order's scores, or without one of the model's entropies."""
        bad = np.flatnonzero(np.isnan(column))
        if len(bad):
            place = places[bad[0]]
            canvas = self.canvas[place]
            raise not_a_number(order, self.canvases[canvas], int(self.slot[place]), self.steps[canvas])

    def _reveal(self, places: np.ndarray, scores: np.ndarray, tokens: np.ndarray, logprobs: np.ndarray) -> None:
        """In place: of each canvas its next count of lowest-scored slots take their most probable tokens. ``places``
        are the masked rows of all canvases that are not only read. After its steps a canvas is filled."""
        pairs = list(zip(self.canvases, self.steps, strict=True))
        most = zip(pairs, self.masks, strict=True)
        counts = [([*canvas.counts, masks][step] if canvas.counts else 0) for (canvas, step), masks in most]
        chosen = lowest(scores, self.canvas[places], _integers(counts))
        again = np.bincount(self.canvas[places[chosen[tokens[chosen] == self.mask_id]]], minlength=len(self))
        self.ids[places[chosen]] = tokens[chosen]
        self.logprob[places[chosen]] = logprobs[chosen]
        self.steps = [step + bool(count) for step, count in zip(self.steps, counts, strict=True)]
        self.masks = [masks - n + more for masks, n, more in zip(self.masks, counts, again.tolist(), strict=True)]

    def _readings(self, columns: Sequence[np.ndarray]) -> list[tuple[Any, Reading]]:
        """The readings of these canvases; ``columns``: what a pass says of their masked rows, the SIG last, if any."""
        tokens, *numbers = (column.tolist() for column in columns)
        columns, sigs = [[int(token) for token in tokens], *numbers[:3]], numbers[3] if len(numbers) > 3 else []
        stops = itertools.accumulate(self.masks, initial=0)
        readings = []
        for name, canvas, (start, stop) in zip(self.names, self.canvases, itertools.pairwise(stops), strict=True):
            compared = () if canvas.sourceless is None else tuple(sigs[start:stop])
            readings.append((name, Reading(*(tuple(column[start:stop]) for column in columns), compared)))
        return readings

    def release(self, eos_id: int) -> tuple[Self, list[tuple[Any, Decoded]]]:
        """The canvases that go on, and the results of those whose text is settled: an EOS, or the end, with no mask
        before it, or all steps done and one more."""
        first_mask, first_eos = self._first(self.mask_id), self._first(eos_id)
        pairs = zip(self.canvases, self.steps, strict=True)
        done = np.array([step > len(canvas.counts) for canvas, step in pairs], dtype=bool)
        flags = ((first_eos < first_mask) | (first_mask == _NEVER) | done).tolist()
        if not any(flags):
            return self, []
        settled, rest = self.split(flags)
        return rest, settled._decoded(list(itertools.compress(first_eos.tolist(), flags)))

    def _first(self, token: int) -> np.ndarray:
        """The first slot of each canvas that holds ``token``."""
        slots = np.where((self.ids == token) & (self.slot >= 0), self.slot, _NEVER)
        return np.minimum.reduceat(slots, np.searchsorted(self.canvas, np.arange(len(self))))

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


def lowest(scores: np.ndarray, canvas: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Places of the ``counts[c]`` lowest scores of each canvas c; equal scores go in the order they stand.

    ``canvas`` ascends.
    """
    ranked = np.lexsort((scores, canvas))  # stable: by canvas, then by score, NaN last
    sizes = np.bincount(canvas, minlength=len(counts))
    rank = np.arange(len(scores)) - (np.cumsum(sizes) - sizes)[canvas]
    return ranked[rank < counts[canvas]]


def _integers(numbers: Iterable[int]) -> np.ndarray:
    return np.fromiter(numbers, np.int64)
