"""The exact decoder: many canvases in one pass, none padded, each with the result of the plain algorithm.

READ :mod:`.reference` FIRST: the plain algorithm, Algorithm 1 for one sentence after the other. The words here:

- a *canvas*: L slots behind a prompt, all of them masks at first. It is *denoised*: each step *reveals* some slots by
  their most probable tokens, in a *reveal order*. Or it is a *probe*: its distributions are only read.
- a *pass*: one forward pass of the model over the rows of many canvases, laid end to end. A *row* is a token.
- the *batch*: the canvases on their way; the *queue*: those that wait (:class:`.Queue`).
- the *budget*: the most rows of a pass. A canvas leaves as soon as it is done, and the next one enters.
- the *lookahead*: canvases as their next steps will leave them, if what their last reading says holds.
- the *SIG* of a slot: how much it depends on the source (:mod:`.head`); some orders ask for it, at each step or once.

The rows of a batch of two canvases, 3 and 2 slots behind prompts of 2 and 4 tokens (M: a mask, still to be revealed):

    ids       | p  p  t  M  M | p  p  p  p  M  M |     t: a slot that is revealed
    canvas    | 0  0  0  0  0 | 1  1  1  1  1  1 |
    position  | 0  1  2  3  4 | 0  1  2  3  4  5 |     in the sequence, for the rotary embedding
    slot      |-2 -1  0  1  2 |-4 -3 -2 -1  0  1 |     < 0: prompt
    read      |          ^  ^ |             ^  ^ |     the rows that pass through the LM head; of a shifted
              |       ^  ^    |          ^  ^    |     family, which predicts the next position, those before

Rows attend inside their own canvas alone. The loop is :meth:`Engine.run`, a pass is :meth:`Engine._read`, and what a
pass does to the canvases is :meth:`Batch.advance` and :meth:`Batch.release`.

Compared with the plain algorithm, the engine skips steps that reveal nothing; the all-mask pass, where a probe has run
it; the last layer and the LM head on rows that are not masked; the full softmax; and all passes after the text is
settled. Probes and denoising steps of all sentences share passes. Where a reveal order asks for the SIG, the same
canvas without its source is in the same pass. Under prefix attention a sentence's prompt is run once (see
:mod:`.prompts`).

The lookahead is for passes that have room, as the last ones of a queue and those of a single sentence. The last reading
of a canvas has a token and a score for each slot that is still masked: by these its next states are guessed. They run
beside the canvas, and where its own reading leads to the guessed state, that one's reading is there already; a wrong
guess is thrown away. So no result changes.

On one CPU thread in float32 the result of a canvas is bit-equal in any company, so a killed job that runs again writes
the same file. This holds for passes of at least 4 tokens and an FFN width that is a multiple of 32, as every backbone
here has: below that, a CPU's BLAS rounds a row by its place in the pass.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch

from entropy_valley.decoding.head import (
    HEAD_ROWS,
    Head,
    SlotValues,
    slot_values,
    sourced_values,
    whole_sums,
)
from entropy_valley.decoding.orders import Slots, needs_sourceless, not_a_number, scored
from entropy_valley.decoding.prompts import CachedPrompts, PassBudget
from entropy_valley.decoding.requests import VALUES, Canvas, Decoded, Ledger, ProbeResult, Queue
from entropy_valley.errors import InputError
from entropy_valley.model.attention import Rows, download, upload
from entropy_valley.model.load import NO_TOKEN

if TYPE_CHECKING:
    from entropy_valley.decoding.orders import Order
    from entropy_valley.model.load import Backbone


BUDGET = {"cpu": 1024, "cuda": 16384}  # tokens of a pass, unless a job says otherwise
NO_SLOT = 2**31 - 1  # beyond all slots


class Engine:
    """Runs canvases on a frozen backbone, at most ``budget`` tokens a pass (a longer canvas runs alone).

    Where a device has no memory for a pass, the budget becomes half of what the pass had asked for, and so do the rows
    of prompts that may be kept. With ``fill`` each pass is padded to that many tokens, which is then the budget (why is
    in :mod:`.head`); then a pass without memory is an InputError. With ``compile_layers`` the layers of padded passes
    are compiled. ``lookahead``: how many of its next states may run beside a canvas.

    ``reveals_masks``: the mask token is in all distributions. A slot that is revealed as a mask is still masked, and
    what is masked after the last step is filled in one step more.
    """

    def __init__(
        self,
        backbone: Backbone,
        ledger: Ledger | None = None,
        budget: int | None = None,
        fill: int | None = None,
        reveals_masks: bool = False,
        compile_layers: bool = False,
        lookahead: int = 3,
    ) -> None:
        self.backbone, self.ledger, self.fill = backbone, ledger or Ledger(), fill
        self._compiled = fill if compile_layers and fill else 0  # passes of no more tokens have compiled layers
        self._never = NO_TOKEN if reveals_masks else backbone.mask_id  # the token that is in no distribution
        self._device = backbone.device
        device = self._device.type
        self.budget = fill or budget or BUDGET[device]
        self.lookahead, self._room = lookahead, fill or _room(backbone)
        self.prompts = CachedPrompts(backbone)
        self.head = Head(backbone.model.lm_head, backbone.float32_head, HEAD_ROWS[device] if fill else None)

    @torch.inference_mode()
    def run(self, queue: Queue, order: Order | None = None) -> Iterator[tuple[Any, ProbeResult | Decoded]]:
        """(name, result) of each canvas as soon as it is known: filled, or the reading of one only to be read.

        What is put into the queue meanwhile is run too. Without an ``order`` no canvas is decoded: each is only read.
        """
        batch = waiting = self._batch()
        self.prompts.waiting = queue.sources
        while queue.heap or batch.canvases or waiting.canvases:
            # 1. Who is in the pass: the canvases on their way, as far as the budget goes, then new ones of the queue.
            self.prompts.forget([batch, waiting])
            batch = batch.cat(waiting)
            budget = PassBudget(self.prompts, self.budget, batch)
            waiting, batch = batch.split(budget.beyond)
            if queue.heap and not waiting.canvases:
                batch, settled = self._enter(batch, budget.take(queue), order)
                yield from settled
            if not batch.canvases:
                continue
            # 2. The pass, with a lookahead where there is room. Where the memory does not suffice, all that can be
            # computed again is freed for a smaller one.
            ahead = self._lookahead(batch, budget.rows)
            whole = batch.cat(ahead.batch)
            seen = self._attempt(whole, order, len(batch) == 1)
            if seen is None:
                self.prompts.empty([batch, waiting])
                torch.cuda.empty_cache()  # only here is the failed pass's memory no longer held by the exception
                continue
            # 3. Each canvas reveals its next slots. It leaves when it was only to be read, or when its text is settled.
            batch, readings = whole.advance(seen, order)
            yield from readings
            if ahead.follows:
                batch, right = ahead.followed(batch)
                self.ledger.count(foreseen=sum(right), **seen.wasted(right))
            batch, settled = batch.release(self.backbone.eos_id)
            yield from settled
        self.prompts.empty()

    def _enter(
        self, batch: Batch, named: Sequence[tuple[Any, Canvas]], order: Order | None
    ) -> tuple[Batch, list[tuple[Any, Decoded]]]:
        """The batch with the named canvases behind it; and the results of those that a known first step settles."""
        if not named:
            return batch, []
        named = sorted(named, key=lambda entry: -entry[1].size)  # on a CPU, equal neighbours share their attention call
        starting, others = self._batch(named).split([_starts(canvas, order) for _, canvas in named])
        settled: list[tuple[Any, Decoded]] = []
        if starting.canvases:
            starting, _ = starting.advance(_first_steps(starting), order)
            starting, settled = starting.release(self.backbone.eos_id)
        return batch.cat(starting).cat(others), settled

    def _batch(self, named: Sequence[tuple[Any, Canvas]] = ()) -> Batch:
        return Batch.of(named, self.backbone.mask_id)

    def _lookahead(self, batch: Batch, rows: int) -> Lookahead:
        """The guessed states behind those of a batch of so many ``rows``: the next one of each canvas, then the second
        ones, and so on, as far as the pass has room.

        A canvas that was not read yet has none. Nor has one whose passes compute its prompt for later ones (see
        :mod:`.prompts`): these need that first.
        """
        ahead, room = Lookahead(self._batch(), []), min(self.budget, self._room)
        if rows >= room:
            return ahead
        pairs = list(zip(batch.canvases, batch.steps, strict=True))
        known = np.array([step > 0 and canvas.reuse.refresh is None for canvas, step in pairs], dtype=bool)
        denoised = np.array([bool(canvas.counts) for canvas in batch.canvases], dtype=bool)
        states, places, end = batch.select(known), (np.cumsum(denoised) - 1)[known], int(denoised.sum())
        for _ in range(self.lookahead):
            if not len(states):
                break
            costs = _integers(canvas.cost for canvas in states.canvases)
            fits = rows + np.cumsum(costs) <= room
            rows += int(costs[fits].sum())
            states, goes_on = states.select(fits).foreseen(self.backbone.eos_id)
            ahead = Lookahead(ahead.batch.cat(states), [*ahead.follows, *places[fits][goes_on].tolist()])
            places, end = np.arange(end, end + len(states)), end + len(states)
        return ahead

    def _attempt(self, batch: Batch, order: Order | None, alone: bool = False) -> Pass | None:
        """A pass over the batch; none, and a smaller budget, where the memory did not suffice. ``alone``: there is one
        canvas, whatever is guessed beside it."""
        try:
            with whole_sums() if self.fill else contextlib.nullcontext():
                return self._read(batch, order)
        except torch.OutOfMemoryError:
            kept = self.prompts.pool.used
            if self.fill and (alone or not kept):
                problem = f"the GPU has no memory for a pass padded to {self.fill} tokens"
                remedy = "Set it to false, so that passes shrink, or use a GPU with more memory."
                raise InputError("decoding.batch_invariant", problem, remedy) from None
            if len(batch) == 1:
                raise
            if kept:
                self.prompts.most = kept // 2
            if not self.fill:
                self.budget = PassBudget(self.prompts, self.budget, batch).rows // 2
            return None

    def _read(self, batch: Batch, order: Order | None) -> Pass:
        """One forward pass, and the head on the rows that speak for the masked slots; their SIG where it is wanted."""
        backbone, wanted = self.backbone, batch.wants_sourceless(order)
        whole = batch.cat(batch.select(wanted).sourceless()) if any(wanted) else batch
        masked, own = whole.masked(), sum(batch.masks)
        paired = np.array(wanted, dtype=bool)[batch.canvas[masked[:own]]]
        layout = self.prompts.layout(whole)
        # A shifted family predicts the next position: slot i is read from row i - 1, slot 0 from the prompt's last.
        read = layout.at[masked - int(backbone.shifted)]
        columns = (read, np.flatnonzero(paired), np.flatnonzero(~paired))
        packed, (rows, compared, others) = layout.packed(self.prompts.pool, columns, self._device)
        tokens = len(layout.ids)
        compiled = tokens <= self._compiled  # a longer pass has another shape
        states = backbone.model.hidden_states(packed, Rows(rows, layout.counts), self.fill, compiled)
        if layout.saved:
            self.prompts.keep(layout)
        sig: torch.Tensor | None = None
        if any(wanted):
            pair = states[:own], states[own:]
            values, sig = sourced_values(self.head, *pair, compared, others, self._never, backbone.eos_id)
        else:
            values = slot_values(self.head, states, self._never, backbone.eos_id)
        self.ledger.count(passes=1, tokens=tokens, rows=len(masked), padded=max(0, (self.fill or 0) - tokens))
        run = np.array([layout.lengths, layout.counts])
        cost = run[:, : len(batch)].copy()
        cost[:, np.array(wanted, dtype=bool)] += run[:, len(batch) : len(whole)]
        return Pass(masked[:own], values, cost, sig)


def _room(backbone: Backbone) -> int:
    """Tokens up to which a pass that is not padded has room for a lookahead: where a wrong guess costs next to nothing.

    A GPU reads all weights for few tokens, too. On a CPU the operations must be so small that calling them takes most
    of the time, as in the demo's models: a right guess saves calls, and no product.
    """
    weights = sum(weight.numel() for weight in backbone.model.model.layers.parameters())
    return 512 if backbone.device.type == "cuda" else 10**8 // weights


def _starts(canvas: Canvas, order: Order | None) -> bool:
    """Whether a canvas's first step is known: a reading says all that the order looks at there, but no SIG."""
    return canvas.start is not None and not needs_sourceless(order, 0, len(canvas.counts))


def _first_steps(batch: Batch) -> Pass:
    """The first steps of canvases whose reading is known, as a pass would give them; on the host, which has it."""
    starts = [canvas.start for canvas in batch.canvases]
    columns = ([getattr(start, name) for start in starts] for name in VALUES)
    values = SlotValues(*(torch.from_numpy(np.concatenate(column)) for column in columns))
    return Pass(batch.masked(), values, np.zeros((2, len(batch)), np.int64))


# --- The canvases of a pass. All of this lies in the host's memory: which canvases leave after a pass is decided there
# anyway. A pass takes what it needs to the device in one copy, and brings its values back in another.

_PER_CANVAS = ("names", "canvases", "steps", "masks")
_PER_ROW = ("ids", "position", "slot", "logprob", "guess", "score")


class Pass(NamedTuple):
    """What a forward pass says of a batch: ``places`` of its masked rows, ascending, and for each, on the device, its
    values and its SIG (nats, float64; NaN where it is not wanted), None where no canvas wants it.

    ``cost``: the tokens and the rows of the LM head that were run for each canvas, (2, canvases)."""

    places: np.ndarray
    values: SlotValues
    cost: np.ndarray
    sig: torch.Tensor | None = None

    def wasted(self, right: Sequence[bool]) -> dict[str, int]:
        """What a ledger counts apart, given which of the guessed states, the last canvases of the pass, were right."""
        tokens, rows = self.cost[:, self.cost.shape[1] - len(right) :].T[~np.array(right, dtype=bool)].sum(0).tolist()
        return {"unused": tokens, "tokens": -tokens, "rows": -rows}


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
    ids: np.ndarray
    canvas: np.ndarray
    position: np.ndarray
    slot: np.ndarray
    logprob: np.ndarray
    guess: np.ndarray
    score: np.ndarray

    @classmethod
    def of(cls, named: Sequence[tuple[Any, Canvas]], mask_id: int) -> Self:
        """The canvases as they enter the engine."""
        names, canvases = [name for name, _ in named], [canvas for _, canvas in named]
        filled = [canvas.tokens or [mask_id] * canvas.length for canvas in canvases]
        ids = _integers(
            token for canvas, slots in zip(canvases, filled, strict=True) for token in (*canvas.prompt, *slots)
        )
        prompts, sizes = _integers(len(canvas.prompt) for canvas in canvases), _integers(c.size for c in canvases)
        owner = np.repeat(np.arange(len(names)), sizes)
        position = np.arange(len(ids)) - (np.cumsum(sizes) - sizes)[owner]
        masks = [list(tokens).count(mask_id) for tokens in filled]
        rows = (ids, owner, position, position - prompts[owner], *np.zeros((3, len(ids))))
        return cls(mask_id, names, canvases, [0] * len(names), masks, *rows)

    def __len__(self) -> int:
        return len(self.canvases)

    def select(self, flags: Sequence[bool] | np.ndarray) -> Self:
        """The flagged canvases alone."""
        chosen = np.array(flags, dtype=bool)
        rows = chosen[self.canvas]
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _PER_ROW}
        columns |= {name: list(itertools.compress(getattr(self, name), flags)) for name in _PER_CANVAS}
        return type(self)(self.mask_id, **columns, canvas=(np.cumsum(chosen) - 1)[self.canvas[rows]])

    def split(self, flags: Sequence[bool]) -> tuple[Self, Self]:
        """The flagged canvases, and the others."""
        if not any(flags):
            return self.select(flags), self
        return self.select(flags), self.select([not flag for flag in flags])

    def cat(self, other: Self) -> Self:
        """These canvases, and behind them those of another batch."""
        if not len(self) or not len(other):
            return self if len(self) else other
        columns: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _PER_CANVAS}
        columns |= {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _PER_ROW}
        canvas = np.concatenate([self.canvas, other.canvas + len(self)])
        return type(self)(self.mask_id, **columns, canvas=canvas)

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
        pairs = [(canvas, canvas.sourceless) for canvas in self.canvases]  # each has one: else nobody wants it here
        canvases = [dataclasses.replace(canvas, prompt=prompt) for canvas, prompt in pairs if prompt is not None]
        without = self.of(list(zip(self.names, canvases, strict=True)), self.mask_id)
        without.ids[without.slot >= 0] = self.ids[self.slot >= 0]
        return dataclasses.replace(without, steps=self.steps, masks=self.masks)

    def advance(self, seen: Pass, order: Order | None) -> tuple[Self, list[tuple[Any, ProbeResult]]]:
        """One step of each canvas; those that were only to be read are not in the new batch, but in the list."""
        reads = [not canvas.counts for canvas in self.canvases]
        read = np.array(reads)[self.canvas[seen.places]]
        scores = [] if all(reads) else [self._scores(seen, np.flatnonzero(~read), order)]
        values = [*seen.values, *([] if seen.sig is None else [seen.sig])]
        columns = download([*values, *scores])
        self._require_numbers(seen.places, columns[1], None)
        if scores:
            tokens, _, logprobs, *_ = (column[~read] for column in columns[: len(values)])
            places, orders = seen.places[~read], columns.pop()
            self._require_numbers(places, orders, order)
            self.guess[places], self.score[places] = tokens, orders
            self._reveal(places, orders, tokens, logprobs)
        if not any(reads):
            return self, []
        leaving, rest = self.split(reads)
        return rest, leaving._readings([column[read] for column in columns])

    def _scores(self, seen: Pass, chosen: np.ndarray, order: Order | None) -> torch.Tensor:
        """What the order says of the ``chosen`` ones of the masked rows: those of all canvases that it reveals."""
        if order is None:
            raise ValueError("a canvas is to be denoised, and there is no order")
        reveals = [bool(canvas.counts) for canvas in self.canvases]
        canvases, steps = list(itertools.compress(self.canvases, reveals)), itertools.compress(self.steps, reveals)
        owner, slot = (np.cumsum(reveals) - 1)[self.canvas[seen.places[chosen]]], self.slot[seen.places[chosen]]
        device = seen.values.entropy.device
        rows, canvas, position, step = upload([chosen, owner, slot, _integers(steps)], device)
        values, sig = seen.values, seen.sig
        if len(canvases) < len(self):
            values = SlotValues(*(column[rows] for column in values))
            sig = None if sig is None else sig[rows]
        if canvases[0].sigs:  # of all canvases or of none: they share the order
            first = np.cumsum([0, *(one.length for one in canvases)])
            (sig,) = upload([np.concatenate([one.sigs for one in canvases])[first[owner] + slot]], device)
        if sig is None:
            sig = torch.full_like(values.entropy, torch.nan)
        return scored(order, Slots(canvases, canvas, position, step, values, sig))

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

    def _readings(self, columns: Sequence[np.ndarray]) -> list[tuple[Any, ProbeResult]]:
        """The readings of these canvases; ``columns``: what a pass says of their masked rows, the SIG last, if any."""
        tokens, *numbers = (column.tolist() for column in columns)
        values, sigs = [[int(token) for token in tokens], *numbers[:3]], numbers[3] if len(numbers) > 3 else []
        stops = itertools.accumulate(self.masks, initial=0)
        readings = []
        for name, canvas, (start, stop) in zip(self.names, self.canvases, itertools.pairwise(stops), strict=True):
            token, entropy, logprob, eos = (tuple(column[start:stop]) for column in values)
            sig = () if canvas.sourceless is None else tuple(sigs[start:stop])
            readings.append((name, ProbeResult(token, entropy, logprob, eos, sig)))
        return readings

    def release(self, eos_id: int) -> tuple[Self, list[tuple[Any, Decoded]]]:
        """The canvases that go on, and the results of those whose text is settled: an EOS, or the end, with no mask
        before it, or all steps done and one more."""
        flags = self._settled(eos_id)
        if not any(flags):
            return self, []
        settled, rest = self.split(flags)
        return rest, settled._decoded(settled._first(eos_id).tolist())

    def _settled(self, eos_id: int) -> list[bool]:
        """Whether the text of each canvas is settled."""
        first_mask, first_eos = self._first(self.mask_id), self._first(eos_id)
        pairs = zip(self.canvases, self.steps, strict=True)
        done = np.array([step > len(canvas.counts) for canvas, step in pairs], dtype=bool)
        return ((first_eos < first_mask) | (first_mask == NO_SLOT) | done).tolist()

    def foreseen(self, eos_id: int) -> tuple[Self, np.ndarray]:
        """The canvases that go on after another step, if what their last reading says holds, and the flags of these.
        Log-probabilities are NaN: those of the last reading are not those of the step."""
        after, places = self.select([True] * len(self)), self.masked()
        after.logprob[:] = np.nan
        after._reveal(places, self.score[places], self.guess[places], after.logprob[places])
        goes_on = ~np.array(after._settled(eos_id), dtype=bool)
        return after.select(goes_on), goes_on

    def _first(self, token: int) -> np.ndarray:
        """The first slot of each canvas that holds ``token``."""
        slots = np.where((self.ids == token) & (self.slot >= 0), self.slot, NO_SLOT)
        return np.minimum.reduceat(slots, self._starts()[:-1])

    def _starts(self) -> np.ndarray:
        """The first row of each canvas, and the end."""
        return np.searchsorted(self.canvas, np.arange(len(self) + 1))

    def rows(self) -> list[slice]:
        """Those of each canvas."""
        return list(itertools.starmap(slice, itertools.pairwise(self._starts().tolist())))

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


@dataclass(frozen=True)
class Lookahead:
    """Guessed states of canvases, behind these in a pass. Each ``follows`` a canvas or another guess: its place among
    those of the pass that are not only read, the guessed ones included."""

    batch: Batch
    follows: list[int]

    def followed(self, batch: Batch) -> tuple[Batch, list[bool]]:
        """The batch after a step of all of it, the guessed states taken out: where a canvas has reached the one that
        follows it, that one's step is its next. And which guesses were right."""
        own, guessed = batch.rows(), self.batch.rows()
        count = len(own) - len(guessed)
        right = [True] * count + [False] * len(guessed)
        last = right.copy()
        for place, (before, rows) in enumerate(zip(self.follows, guessed, strict=True), count):
            if right[before] and np.array_equal(batch.ids[own[before]], self.batch.ids[rows]):
                right[place] = last[place] = True
                last[before] = False
                logprob = batch.logprob[own[place]]
                np.copyto(logprob, batch.logprob[own[before]], where=np.isnan(logprob))
        return batch.select(last), right[count:]


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
