"""The exact decoder: many canvases in one pass, none padded, each with the result of the plain algorithm.

READ :mod:`.reference` FIRST: the plain algorithm, Algorithm 1 for one sentence after the other. The words here:

- a *canvas*: L slots behind a prompt, all of them masks at first. It is *denoised*: each step *reveals* some slots by
  their most probable tokens, in a *reveal order*. Or it is a *probe*: its distributions are only read.
- a *pass*: one forward pass of the model over the rows of many canvases, laid end to end. A *row* is a token.
- the *batch*: the canvases on their way (:mod:`.batch`); the *queue*: those that wait.
- the *budget*: the most rows of a pass. A canvas leaves as soon as it is done, and the next one enters.
- the *lookahead*: canvases as their next steps may leave them, in passes that have room (:class:`.Lookahead`).
- the *SIG* of a slot: how much it depends on the source (:mod:`.head`); some orders ask for it, at each step or once.

The rows of a batch of two canvases, 3 and 2 slots behind prompts of 2 and 4 tokens (M: a mask, still to be revealed):

    ids       | p  p  t  M  M | p  p  p  p  M  M |     t: a slot that is revealed
    canvas    | 0  0  0  0  0 | 1  1  1  1  1  1 |
    position  | 0  1  2  3  4 | 0  1  2  3  4  5 |     in the sequence, for the rotary embedding
    slot      |-2 -1  0  1  2 |-4 -3 -2 -1  0  1 |     < 0: prompt
    read      |          ^  ^ |             ^  ^ |     the rows that pass through the LM head; of a shifted
              |       ^  ^    |          ^  ^    |     family, which predicts the next position, those before

Rows attend inside their own canvas alone. The loop is :meth:`Engine.run`, a pass is :meth:`Engine._read`, and what a
pass does to the canvases is :meth:`.Batch.step`.

Compared with the plain algorithm, the engine skips steps that reveal nothing; the all-mask pass, where a probe has run
it; the last layer and the LM head on rows that are not masked; the full softmax; and all passes after the text is
settled. Probes and denoising steps of all sentences share passes. Where a reveal order asks for the SIG, the same
canvas without its source is in the same pass. Under prefix attention a sentence's prompt is run once (see
:mod:`.prompts`).

On one CPU thread in float32 the result of a canvas is bit-equal in any company, so a killed job that runs again writes
the same file. This holds for passes of at least 4 tokens and an FFN width that is a multiple of 32, as every backbone
here has: below that, a CPU's BLAS rounds a row by its place in the pass.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from entropy_valley.decoding.batch import Batch, Lookahead, Pass
from entropy_valley.decoding.canvas import VALUES, Answer, Canvas, FinishedText, Ledger, Queue
from entropy_valley.decoding.head import HEAD_ROWS, Head, SlotValues, slot_values, sourced_values, whole_sums
from entropy_valley.decoding.orders import Order, needs_sourceless
from entropy_valley.decoding.prompts import CachedPrompts, PassBudget
from entropy_valley.errors import InputError
from entropy_valley.model.attention import pack
from entropy_valley.model.load import NO_TOKEN, Backbone

BUDGET = {"cpu": 1024, "cuda": 16384}  # tokens of a pass, unless a job says otherwise


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
        self.backbone, self.ledger, self.fill = backbone, Ledger() if ledger is None else ledger, fill
        self._compiled = fill if compile_layers and fill else 0  # passes of no more tokens have compiled layers
        self._never = NO_TOKEN if reveals_masks else backbone.mask_id  # the token that is in no distribution
        device = backbone.device.type
        self.budget = fill or budget or BUDGET[device]
        self.lookahead, self._room = lookahead, fill or _room(backbone)
        self.prompts = CachedPrompts(backbone)
        rows = HEAD_ROWS[device] if fill else None
        self.head = Head(backbone.model.lm_head, backbone.float32_head, rows, backbone.vocabulary)

    @torch.inference_mode()
    def run(self, queue: Queue, order: Order | None = None) -> Iterator[Answer]:
        """(name, result) of each canvas as soon as it is known: filled, or the reading of one only to be read.

        What is put into the queue meanwhile is run too. Without an ``order`` no canvas is decoded: each is only read.
        """
        batch = waiting = nobody = Batch.of([], self.backbone.mask_id)
        self.prompts.waiting = queue.sources
        while queue.heap or batch.canvases or waiting.canvases:
            # 1. Who is in the pass: the canvases on their way, as far as the budget goes, then new ones of the queue.
            if self.prompts.pool.size:
                self.prompts.forget([batch, waiting])
            if waiting.canvases:
                batch, waiting = batch.cat(waiting), nobody
            budget = PassBudget(self.prompts, self.budget, batch)
            if any(budget.beyond):
                waiting, batch = batch.split(budget.beyond)
            elif queue.heap:
                batch, settled = self._enter(batch, budget.take(queue), order)
                yield from settled
            if not batch.canvases:
                continue
            # 2. The pass, with a lookahead where there is room. Where the memory does not suffice, all that can be
            # computed again is freed for a smaller one.
            room = min(self.budget, self._room) - budget.rows
            ahead = Lookahead.behind(batch, self.lookahead, room, self.backbone.eos_id)
            seen = self._attempt(ahead.whole, order, len(batch.canvases) == 1)
            if seen is None:
                self.prompts.empty([batch, waiting])
                torch.cuda.empty_cache()  # only here is the failed pass's memory no longer held by the exception
                continue
            # 3. Each canvas reveals its next slots. It leaves when it was only to be read, or when its text is settled.
            batch, results, counts = ahead.whole.step(seen, order, self.backbone.eos_id, ahead)
            self.ledger.update(counts)
            yield from results
        self.prompts.empty()

    @torch.inference_mode()
    def score(self, text: FinishedText) -> list[float]:
        """The log-probability (nats) of each token of a finished canvas, in a pass of its own: no company."""
        backbone, (prompt, tokens) = self.backbone, text
        packed = pack([[*prompt, *tokens]], backbone.device, [backbone.prefix(len(prompt))])
        first = len(prompt) - int(backbone.shifted)
        states = backbone.model.hidden_states(packed)[first : first + len(tokens)]
        chunks = []
        for chunk in self.head.chunks(states):
            chunks.append(torch.cat([logits for _, logits in self.head.blocks(chunk)], 1))
        logits = torch.cat(chunks)[: len(tokens)].double()
        if self._never != NO_TOKEN:
            logits[:, self._never] = -torch.inf
        self.ledger.update(passes=1, tokens=len(prompt) + len(tokens), rows=len(tokens))
        ids = torch.tensor(tokens, device=logits.device)
        return logits.log_softmax(-1).gather(1, ids[:, None])[:, 0].tolist()

    def _enter(
        self, batch: Batch, named: Sequence[tuple[Any, Canvas]], order: Order | None
    ) -> tuple[Batch, list[Answer]]:
        """The batch with the named canvases behind it; and the results of those that a known first step settles."""
        # On a CPU, equal neighbours share their attention call.
        named = sorted(named, key=lambda one: -len(one[1].prompt) - one[1].length)
        entering = Batch.of(named, self.backbone.mask_id)
        # A canvas's first step is known where a reading says all that the order looks at there, but no SIG.
        known = []
        for canvas in entering.canvases:
            known.append(canvas.start is not None and not needs_sourceless(order, 0, len(canvas.counts)))
        if not any(known):
            return batch.cat(entering), []
        starting, others = entering.split(known)
        # The step that a pass would lead to, on the host, which has the readings.
        starts = [canvas.start for canvas in starting.canvases]
        columns = ([getattr(start, name) for start in starts] for name in VALUES)
        values = SlotValues(*(torch.from_numpy(np.concatenate(column)) for column in columns))
        seen = Pass(starting.masked(), values, np.zeros((2, len(starts))))
        starting, settled, _ = starting.step(seen, order, self.backbone.eos_id)
        return batch.cat(starting, others), settled

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
        backbone, count = self.backbone, len(batch.canvases)
        # The canvases that run without their source too: those whose SIG the order wants now, or that are read with it.
        wanted = np.zeros(count, dtype=bool)
        for place, (canvas, step) in enumerate(zip(batch.canvases, batch.steps, strict=True)):
            if canvas.sourceless is not None:
                wanted[place] = not canvas.counts or needs_sourceless(order, step, len(canvas.counts))
        whole = batch.cat(batch.select(wanted).sourceless()) if wanted.any() else batch
        masked, own = whole.masked(), sum(batch.masks)
        paired = wanted[batch.canvas[masked[:own]]]
        # A shifted family predicts the next position: slot i is read from row i - 1, slot 0 from the prompt's last.
        read = masked - int(backbone.shifted)
        layout = self.prompts.layout(whole, read, np.flatnonzero(paired), np.flatnonzero(~paired))
        run = np.array([layout.packed.lengths, layout.rows.counts])
        tokens = int(run[0].sum())
        compiled = tokens <= self._compiled  # a longer pass has another shape
        states = backbone.model.hidden_states(layout.packed, layout.rows, self.fill, compiled)
        self.prompts.cached |= layout.saved  # only now: the pass is done
        sig: torch.Tensor | None = None
        if wanted.any():
            pair = states[:own], states[own:]
            compared, others = layout.columns
            values, sig = sourced_values(self.head, *pair, compared, others, self._never, backbone.eos_id)
        else:
            values = slot_values(self.head, states, self._never, backbone.eos_id)
        self.ledger.update(passes=1, tokens=tokens, rows=len(masked), padded=max(0, (self.fill or 0) - tokens))
        cost = run[:, :count].copy()
        cost[:, wanted] += run[:, count : len(whole.canvases)]
        return Pass(masked[:own], values, cost, sig)


def _room(backbone: Backbone) -> int:
    """Tokens up to which a pass that is not padded has room for a lookahead: where a wrong guess costs next to nothing.

    A GPU reads all weights for few tokens, too. On a CPU the operations must be so small that calling them takes most
    of the time, as in the demo's models: a right guess saves calls, and no product.
    """
    weights = sum(weight.numel() for weight in backbone.model.model.layers.parameters())
    return 512 if backbone.device.type == "cuda" else 10**8 // weights
