"""The exact decoder: many canvases in one pass, none padded, each with the result of the plain algorithm.

READ :mod:`.reference` FIRST: the plain algorithm, Algorithm 1 for one sentence after the other. Compared with it, the
engine skips steps that reveal nothing; the all-mask pass, where a probe has run it; the last layer and the LM head on
rows that are not masked; the full softmax; and all passes after the text is settled. Probes and denoising steps of all
sentences share passes: a canvas leaves as soon as it is done, and the next one enters. Where a reveal order asks for
the SIG, the same canvas without its source is in the same pass. Under prefix attention a sentence's prompt is run once
(see :mod:`.prompts`).

The loop is :meth:`Engine.run`; a pass is :meth:`Engine._read`; what a pass does to the canvases is in :mod:`.batch`.

On one CPU thread in float32 the result of a canvas is bit-equal in any company, so a killed job that runs again writes
the same file. This holds for passes of at least 4 tokens and an FFN width that is a multiple of 32, as every backbone
here has: below that, a CPU's BLAS rounds a row by its place in the pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from entropy_valley.decoding.batch import Batch, Pass
from entropy_valley.decoding.head import Head, SlotValues, slot_values, sourced_values
from entropy_valley.decoding.kernels import HEAD_ROWS, compiled_layers, whole_sums
from entropy_valley.decoding.orders import needs_sourceless
from entropy_valley.decoding.prompts import KeptPrompts, Load
from entropy_valley.decoding.requests import VALUES, Canvas, Decoded, Ledger, Queue, Reading
from entropy_valley.errors import InputError
from entropy_valley.model.attention import Rows, hidden_states, upload

if TYPE_CHECKING:
    from entropy_valley.decoding.orders import Order
    from entropy_valley.model.load import Backbone


BUDGET = {"cpu": 1024, "cuda": 16384}  # tokens of a pass, unless a job says otherwise


class Engine:
    """Runs canvases on a frozen backbone, at most ``budget`` tokens a pass (a longer canvas runs alone).

    Where a device has no memory for a pass, the budget becomes half of what the pass had asked for, and so do the rows
    of prompts that may be kept. With ``fill`` each pass is padded to that many tokens, which is then the budget, so
    that no result depends on its company on a GPU (see :mod:`.kernels`); then a pass without memory is an
    InputError. With ``compile_layers`` the layers of padded passes are compiled (see :mod:`.kernels`).

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
    ) -> None:
        self.backbone, self.ledger, self.fill = backbone, ledger or Ledger(), fill
        self._compiles = compile_layers and fill is not None
        self._never = -1 if reveals_masks else backbone.mask_id  # the token that is in no distribution
        self._device = backbone.device
        device = self._device.type
        self.budget = fill or budget or BUDGET[device]
        self.prompts = KeptPrompts(backbone)
        self.head = Head(backbone.model.lm_head, backbone.float32_head, HEAD_ROWS[device] if fill else None)

    @torch.inference_mode()
    def run(self, queue: Queue, order: Order | None = None) -> Iterator[tuple[Any, Reading | Decoded]]:
        """(name, result) of each canvas as soon as it is known: filled, or the reading of one only to be read.

        What is put into the queue meanwhile is run too. Without an ``order`` no canvas is decoded: each is only read.
        """
        batch = waiting = nobody = self._batch()
        queue.share(self.prompts.are_shared)
        while queue.heap or batch.canvases or waiting.canvases:
            # 1. Who is in the pass: the canvases on their way, as far as the budget goes, then new ones of the queue.
            self.prompts.forget([batch, waiting], queue.sources)
            batch = batch.cat(waiting)
            load = Load(self.prompts, self.budget, batch)
            waiting, batch = batch.split(load.beyond) if any(load.beyond) else (nobody, batch)
            if queue.heap and not waiting.canvases:
                batch, settled = self._enter(batch, load.take(queue), order)
                yield from settled
            if not batch.canvases:
                continue
            # 2. The pass. Where the memory does not suffice, all that can be computed again is freed for a smaller one.
            seen = self._attempt(batch, order)
            if seen is None:
                self.prompts.empty([batch, waiting])
                torch.cuda.empty_cache()  # only here is the failed pass's memory no longer held by the exception
                continue
            # 3. Each canvas reveals its next slots. It leaves when it was only to be read, or when its text is settled.
            batch, readings = batch.advance(seen, order)
            yield from readings
            batch, settled = batch.release(self.backbone.eos_id)
            yield from settled
        self.prompts.empty()

    def _enter(
        self, batch: Batch, named: Sequence[tuple[Any, Canvas]], order: Order | None
    ) -> tuple[Batch, list[tuple[Any, Decoded]]]:
        """The batch with the named canvases behind it; and the results of those that a known first step settles."""
        if not named:
            return batch, []
        begun = [entry for entry in named if _starts(entry[1], order)]
        others, settled = self._batch([entry for entry in named if not _starts(entry[1], order)]), []
        if begun:
            started = self._batch(begun)
            started, _ = started.advance(_first_steps(started, self._device), order)
            started, settled = started.release(self.backbone.eos_id)
            batch = batch.cat(started)
        return batch.cat(others), settled

    def _batch(self, named: Sequence[tuple[Any, Canvas]] = ()) -> Batch:
        return Batch.of(named, self.backbone.mask_id)

    def _attempt(self, batch: Batch, order: Order | None) -> Pass | None:
        """A pass over the batch; none, and a smaller budget, where the memory did not suffice."""
        try:
            with whole_sums() if self.fill else contextlib.nullcontext():
                return self._read(batch, order)
        except torch.OutOfMemoryError:
            kept = self.prompts.pool.used
            if self.fill and (len(batch) == 1 or not kept):
                problem = f"the GPU has no memory for a pass padded to {self.fill} tokens"
                remedy = "Set it to false, so that passes shrink, or use a GPU with more memory."
                raise InputError("decoding.batch_invariant", problem, remedy) from None
            if len(batch) == 1:
                raise
            if kept:
                self.prompts.most = kept // 2
            if not self.fill:
                self.budget = Load(self.prompts, self.budget, batch).rows // 2
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
        packed, (rows, *compared) = layout.packed(self.prompts.pool, columns, self._device)
        tokens = len(layout.ids)
        compiles = self._compiles and tokens <= self.fill  # a longer pass has another shape
        with compiled_layers(backbone.model) if compiles else contextlib.nullcontext():
            states = hidden_states(backbone.model, packed, Rows(rows, layout.counts), self.fill)
        if layout.saved:
            layout.keep()
        head, special = self.head, (self._never, backbone.eos_id)
        if any(wanted):
            backward = getattr(order, "backward", False)
            seen = sourced_values(head, states[:own], states[own:], *compared, *special, backward=backward)
        else:
            seen = slot_values(head, states, *special), None
        self.ledger.count(passes=1, tokens=tokens, rows=len(masked), padded=max(0, (self.fill or 0) - tokens))
        return Pass(masked[:own], *seen)


def _starts(canvas: Canvas, order: Order | None) -> bool:
    """Whether a canvas's first step is known: a reading says all that the order looks at there, but no SIG."""
    return canvas.start is not None and not needs_sourceless(order, 0, len(canvas.counts))


def _first_steps(batch: Batch, device: torch.device) -> Pass:
    """The first steps of canvases whose reading is known, as a pass would give them."""
    starts = [canvas.start for canvas in batch.canvases]
    columns = ([getattr(start, name) for start in starts] for name in VALUES)
    tokens, *numbers = (np.concatenate(column) for column in columns)
    return Pass(batch.masked(), SlotValues(*upload([tokens], device), *upload(numbers, device)))
