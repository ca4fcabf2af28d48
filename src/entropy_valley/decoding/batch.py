"""The canvases of a pass, packed without padding: how they enter, take a step and leave.

All of this lies in the host's memory: which canvases leave after a pass is decided there anyway. A pass takes what it
needs to the device in one copy, and brings its values back in another.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from entropy_valley.decoding.canvas import Answer, Canvas, Decoded, ProbeResult
from entropy_valley.decoding.head import SlotValues
from entropy_valley.errors import InputError
from entropy_valley.model.attention import download, upload

Array = np.ndarray
NO_SLOT = 2**31 - 1  # beyond all slots

# --- What a pass says of a batch, and what an order sees of it.


class Pass(NamedTuple):
    """What a forward pass says of a batch: ``places`` of its masked rows, ascending, and for each, on the device, its
    values and its SIG (nats, float64; NaN where it is not wanted), None where no canvas wants it.

    ``cost``: the tokens and the rows of the LM head that were run for each canvas, (2, canvases).
    """

    places: Array
    values: SlotValues
    cost: Array
    sig: Tensor | None = None


@dataclass(frozen=True)
class Slots:
    """The masked slots of all canvases of a pass that are denoised, canvas by canvas in slot order: what an order sees.

    Per slot: ``canvas`` (index into ``canvases``), ``position`` (from 0), ``values``, and ``sig``, how much the slot
    depends on the source (nats, float64): NaN unless the order is a :class:`.SourceGuided` one, and in canvases whose
    step does not need a stepwise one. Per canvas: ``step``, how many of its steps that reveal anything are done.
    """

    canvases: Sequence[Canvas]
    canvas: Tensor
    position: Tensor
    step: Tensor
    values: SlotValues
    sig: Tensor

    def on_device(self, *columns: Sequence[float] | Array) -> tuple[Tensor, ...]:
        """Columns of numbers, such as one for each canvas, as tensors beside the others; the host does not wait."""
        return upload([np.asarray(column) for column in columns], self.step.device)

    def of_all(self, columns: Sequence[Sequence[float] | Array]) -> Tensor:
        """For each masked slot its number; ``columns`` has one for each slot of each canvas, masked or not."""
        starts = list(itertools.accumulate(map(len, columns[:-1]), initial=0))
        (first,), (numbers,) = self.on_device(starts), self.on_device(np.concatenate(columns))
        return numbers[first[self.canvas] + self.position]


# --- The batch.

_PER_CANVAS = ("names", "canvases", "steps", "masks")
_PER_ROW = ("ids", "position", "slot", "logprob", "guess", "score")


@dataclass
class Batch:
    """Canvases packed without padding.

    Per canvas: ``names``, ``canvases``, revealing ``steps`` done, and ``masks`` left. Per row: token id, index of its
    ``canvas``, place in its sequence, slot (< 0: prompt), log-probability in the pass that revealed it (float64); of a
    masked one the most probable token, its ``guess``, and the order's ``score`` at the last reading.
    """

    mask_id: int
    names: list[Any]
    canvases: list[Canvas]
    steps: list[int]
    masks: list[int]
    ids: Array
    canvas: Array
    position: Array
    slot: Array
    logprob: Array
    guess: Array
    score: Array

    @classmethod
    def of(cls, named: Sequence[tuple[Any, Canvas]], mask_id: int) -> Self:
        """The canvases as they enter the engine."""
        columns: tuple[list[int], ...] = [], [], [], []
        (ids, owner, position, slot), masks = columns, []
        for place, (_, canvas) in enumerate(named):
            # A canvas that is revealed in part has the mask id in its other slots.
            tokens = list(canvas.tokens or [mask_id] * canvas.length)
            masks.append(tokens.count(mask_id))
            ids += [*canvas.prompt, *tokens]
            size = len(canvas.prompt) + canvas.length
            owner += [place] * size
            position += range(size)
            slot += range(-len(canvas.prompt), canvas.length)
        rows = (np.array(column, np.int64) for column in columns)
        names, canvases = [name for name, _ in named], [canvas for _, canvas in named]
        return cls(mask_id, names, canvases, [0] * len(names), masks, *rows, *np.zeros((3, len(ids))))

    def __len__(self) -> int:
        return len(self.canvases)

    def select(self, flags: Sequence[bool] | Array) -> Self:
        """The flagged canvases alone."""
        chosen = np.array(flags, dtype=bool)
        rows = chosen[self.canvas]
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _PER_ROW}
        columns |= {name: list(itertools.compress(getattr(self, name), flags)) for name in _PER_CANVAS}
        return type(self)(self.mask_id, **columns, canvas=(np.cumsum(chosen) - 1)[self.canvas[rows]])

    def split(self, flags: Sequence[bool]) -> tuple[Self, Self]:
        """The flagged canvases, and the others."""
        return self.select(flags), self.select([not flag for flag in flags]) if any(flags) else self

    def cat(self, *others: Self) -> Self:
        """These canvases, and behind them those of other batches."""
        batches = [batch for batch in (self, *others) if batch.canvases]
        if len(batches) < 2:
            return batches[0] if batches else self
        columns: dict[str, Any] = {}
        for name in _PER_CANVAS:
            columns[name] = list(itertools.chain.from_iterable(getattr(batch, name) for batch in batches))
        for name in _PER_ROW:
            columns[name] = np.concatenate([getattr(batch, name) for batch in batches])
        # Each canvas's number is its place among all.
        starts = np.cumsum([0, *map(len, batches)])
        canvas = np.concatenate([batch.canvas + start for batch, start in zip(batches, starts[:-1], strict=True)])
        return type(self)(self.mask_id, **columns, canvas=canvas)

    def masked(self) -> Array:
        """The places of the rows that are masked slots, ascending."""
        return np.flatnonzero((self.ids == self.mask_id) & (self.slot >= 0))

    @property
    def denoised(self) -> Array:
        """The flags of the canvases that are denoised; the others are only read."""
        return np.array([bool(canvas.counts) for canvas in self.canvases], dtype=bool)

    def sourceless(self) -> Self:
        """The same canvases, as far revealed, each behind its prompt without the source."""
        canvases = [dataclasses.replace(canvas, prompt=canvas.sourceless or ()) for canvas in self.canvases]
        # The prompts differ in length, the slots do not.
        without = self.of(list(zip(self.names, canvases, strict=True)), self.mask_id)
        without.ids[without.slot >= 0] = self.ids[self.slot >= 0]
        without.steps, without.masks = self.steps, self.masks
        return without

    # A step, from the pass to the canvases that leave.

    def step(
        self, seen: Pass, order: Any, eos_id: int, ahead: Lookahead | None = None
    ) -> tuple[Batch, list[Answer], dict[str, int]]:
        """One step of each canvas after a pass: the order scores the masked slots, and the lowest take their most
        probable tokens. Then those that go on; the results of those that leave, because they were only to be read or
        their text is settled; and what a ledger counts of the states that were guessed ``ahead``.

        ``order`` is an :class:`.Order`, None where no canvas is denoised. Here the host waits for the device, and
        nowhere else. Raises InputError where the model or the order gives NaN.
        """
        slots = self._slots(seen)
        scores = None if slots is None else order.scored(slots)
        columns = download([*seen.values, *(column for column in (seen.sig, scores) if column is not None)])
        for place in seen.places[np.isnan(columns[1])]:
            canvas = self.canvases[self.canvas[place]]
            problem = f"gives NaN for slot {self.slot[place]} of a canvas of {canvas.length} slots"
            remedy = "Its weights or its adapter are damaged, or diverged in training: fetch or make them again."
            raise InputError("model", problem, remedy)
        denoised = self.denoised
        rows = denoised[self.canvas[seen.places]]
        if scores is not None:
            places, ranks = seen.places[rows], columns.pop()
            for place in places[np.isnan(ranks)]:
                owner = self.canvas[place]
                raise order.not_a_number(self.canvases[owner], int(self.slot[place]), self.steps[owner])
            tokens, _, logprobs, *_ = (column[rows] for column in columns)
            self.guess[places], self.score[places] = tokens, ranks
            self._reveal(places, ranks, tokens, logprobs)
        batch: Batch = self
        results: list[Answer] = []
        counts: dict[str, int] = {}
        if not denoised.all():
            read, batch = self.split((~denoised).tolist())
            results += read._readings([column[~rows].tolist() for column in columns])
        if ahead and ahead.follows:
            batch, counts = ahead.followed(batch, seen)
        settled = batch._settled(eos_id)
        if any(settled):
            filled, batch = batch.split(settled)
            results += filled._decoded(eos_id)
        return batch, results, counts

    def _slots(self, seen: Pass) -> Slots | None:
        """What an order sees of a pass: the masked slots of the canvases that are denoised; None if there are none."""
        denoised = self.denoised
        if not denoised.any():
            return None
        chosen = np.flatnonzero(denoised[self.canvas[seen.places]])
        places = seen.places[chosen]
        canvases = list(itertools.compress(self.canvases, denoised))
        owner = (np.cumsum(denoised) - 1)[self.canvas[places]]
        columns = [chosen, owner, self.slot[places], np.array(self.steps)[denoised]]
        rows, canvas, position, step = upload(columns, seen.values.entropy.device)
        values, sig = seen.values, seen.sig
        if sig is None:
            sig = torch.full_like(values.entropy, torch.nan)
        if not denoised.all():
            values, sig = SlotValues(*(column[rows] for column in values)), sig[rows]
        slots = Slots(canvases, canvas, position, step, values, sig)
        if canvases[0].sigs:  # of all canvases or of none: they share the order
            slots = dataclasses.replace(slots, sig=slots.of_all([canvas.sigs for canvas in canvases]))
        return slots

    def _reveal(self, places: Array, scores: Array, tokens: Array, logprobs: Array) -> None:
        """In place: of each canvas its next count of lowest-scored slots take their most probable tokens. ``places``
        are the masked rows of all canvases that are denoised. After its steps a canvas is filled."""
        counts = np.zeros(len(self), np.int64)
        for place, (canvas, step) in enumerate(zip(self.canvases, self.steps, strict=True)):
            if canvas.counts:
                counts[place] = canvas.counts[step] if step < len(canvas.counts) else self.masks[place]
        chosen = lowest(scores, self.canvas[places], counts)
        revealed = places[chosen]
        self.ids[revealed], self.logprob[revealed] = tokens[chosen], logprobs[chosen]
        # A slot that is revealed as a mask is still masked.
        again = np.bincount(self.canvas[revealed[tokens[chosen] == self.mask_id]], minlength=len(self))
        self.steps = (np.array(self.steps) + (counts > 0)).tolist()
        self.masks = (np.array(self.masks) - counts + again).tolist()

    def _readings(self, columns: Sequence[list[float]]) -> list[Answer]:
        """The readings of these canvases, from the columns of their masked rows; the SIG is the last, if any."""
        readings: list[Answer] = []
        start = 0
        for name, canvas, masks in zip(self.names, self.canvases, self.masks, strict=True):
            token, entropy, logprob, eos, *sig = (tuple(column[start : start + masks]) for column in columns)
            sigs = sig[0] if sig and canvas.sourceless is not None else ()
            readings.append((name, ProbeResult(tuple(map(int, token)), entropy, logprob, eos, sigs)))
            start += masks
        return readings

    def _settled(self, eos_id: int) -> list[bool]:
        """Whether the text of each canvas is settled: an EOS, or the end, with no mask before it, or all steps done and
        one more."""
        first_mask, first_eos = self._first(self.mask_id), self._first(eos_id)
        steps = np.array([len(canvas.counts) for canvas in self.canvases])
        done = np.array(self.steps) > steps  # a mask that was revealed as one takes a step more
        return ((first_eos < first_mask) | (first_mask == NO_SLOT) | done).tolist()

    def foreseen(self, flags: Array, eos_id: int) -> tuple[Self, Array]:
        """The flagged canvases that go on after another step, if what their last reading says holds, and the flags of
        these among them. Log-probabilities are NaN: those of the last reading are not those of the step."""
        after = self.select(flags)
        places = after.masked()
        after.logprob[:] = np.nan
        after._reveal(places, after.score[places], after.guess[places], after.logprob[places])
        goes_on = ~np.array(after._settled(eos_id), dtype=bool)
        return after.select(goes_on), goes_on

    def _first(self, token: int) -> Array:
        """The first slot of each canvas that holds ``token``."""
        slots = np.where((self.ids == token) & (self.slot >= 0), self.slot, NO_SLOT)
        return np.minimum.reduceat(slots, np.searchsorted(self.canvas, np.arange(len(self))))

    def rows(self) -> list[slice]:
        """Those of each canvas."""
        ends = np.cumsum(np.bincount(self.canvas, minlength=len(self))).tolist()
        return list(map(slice, [0, *ends], ends))

    def _decoded(self, eos_id: int) -> list[Answer]:
        done: list[Answer] = []
        columns = self.rows(), self.names, self.canvases, self.steps, self._first(eos_id).tolist()
        for rows, name, canvas, steps, end in zip(*columns, strict=True):
            slots, text = slice(rows.stop - canvas.length, rows.stop), min(end, canvas.length)
            mean = round(math.fsum(self.logprob[slots][:text].tolist()) / text, 4) if text else None
            done.append((name, Decoded(self.ids[slots].tolist(), text, mean, steps)))
        return done


def lowest(scores: Array, canvas: Array, counts: Array) -> Array:
    """Places of the ``counts[c]`` lowest scores of each canvas c; equal scores go in the order they stand.

    ``canvas`` ascends.
    """
    ranked = np.lexsort((scores, canvas))  # stable: by canvas, then by score, NaN last
    sizes = np.bincount(canvas, minlength=len(counts))
    rank = np.arange(len(scores)) - (np.cumsum(sizes) - sizes)[canvas]
    return ranked[rank < counts[canvas]]


# --- The lookahead: canvases as their next steps will leave them, if what their last reading says holds.
#
# It is for passes that have room, as the last ones of a queue and those of a single sentence. The last reading of a
# canvas has a token and a score for each slot that is still masked: by these its next states are guessed. They run
# beside the canvas, and where its own reading leads to the guessed state, that one's reading is there already; a wrong
# guess is thrown away. So no result changes.


class Lookahead(NamedTuple):
    """A ``whole`` pass: canvases, and behind them guessed states. A state of the token ids ``guesses`` ``follows`` a
    canvas or another state: its place among those of the pass that are denoised, the guessed ones included."""

    whole: Batch
    follows: list[int]
    guesses: list[Array]

    @classmethod
    def behind(cls, batch: Batch, depth: int, room: int, eos_id: int) -> Self:
        """The guessed states behind those of a batch: the next one of each canvas, then the second ones, and so on up
        to ``depth``, as far as there is ``room`` for their rows.

        A canvas that was not read yet has none. Nor has one whose passes compute its prompt for later ones: these need
        that first.
        """
        pairs = list(zip(batch.canvases, batch.steps, strict=True))
        known = np.array([step > 0 and canvas.reuse.refresh is None for canvas, step in pairs], dtype=bool)
        denoised = batch.denoised
        states, places, end = batch.select(known), (np.cumsum(denoised) - 1)[known], int(denoised.sum())
        ahead, follows, guesses = [], [], []
        for _ in range(depth):
            costs = np.cumsum([canvas.cost for canvas in states.canvases])
            fits = costs <= room
            if not fits.any():
                break
            room -= int(costs[fits][-1])  # sums: the last that fits has the cost of all
            states, goes_on = states.foreseen(fits, eos_id)
            ahead.append(states)
            follows += places[fits][goes_on].tolist()
            guesses += [states.ids[rows] for rows in states.rows()]
            places = np.arange(end, end + len(states))
            end += len(states)
        return cls(batch.cat(*ahead), follows, guesses)

    def followed(self, batch: Batch, seen: Pass) -> tuple[Batch, dict[str, int]]:
        """The batch after a step of all of it, the guessed states taken out: where a canvas has reached the one that
        follows it, that one's step is its next. And what a ledger counts: right guesses, and apart the wrong ones."""
        own, count = batch.rows(), len(batch) - len(self.follows)
        last = np.arange(len(batch)) < count
        right = last.copy()
        for place, (before, ids) in enumerate(zip(self.follows, self.guesses, strict=True), count):
            if right[before] and np.array_equal(batch.ids[own[before]], ids):
                # A guess knows no log-probabilities of the step that it skipped: they are the canvas's own.
                right[place] = last[place] = True
                last[before] = False
                logprob = batch.logprob[own[place]]
                np.copyto(logprob, batch.logprob[own[before]], where=np.isnan(logprob))
        guessed = right[count:]
        tokens, rows = seen.cost[:, -len(guessed) :][:, ~guessed].sum(1).tolist()
        return batch.select(last), {"foreseen": int(guessed.sum()), "unused": tokens, "tokens": -tokens, "rows": -rows}
