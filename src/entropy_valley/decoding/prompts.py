"""Prompts that are computed once: what is kept of them between passes, and the rows that each pass runs.

Which passes compute a prompt says :class:`.Reuse`. The tensors are in :class:`.Pool`, and :class:`.CachedRows` hands
them to the attention. What is kept is freed as soon as no canvas that waits or runs needs it. A prompt that is needed
again is computed again. The row that slot 0 of a shifted family is read from belongs to the slots: it is computed in
every pass.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from entropy_valley import machine
from entropy_valley.decoding.batch import Batch
from entropy_valley.decoding.canvas import NO_REUSE, Canvas, PromptIds, Queue, SharedSource
from entropy_valley.model.attention import CachedRows, Packed, Pool, upload
from entropy_valley.model.decoder import FULL_KERNEL
from entropy_valley.model.prompt import PREFIX

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone

# What computes the rows of a prompt: a sequence, or the passes over one canvas, by its name, which keeps them for
# itself.
OwnSource = tuple[PromptIds, tuple[Any]]
RowSource = SharedSource | OwnSource

Places = np.ndarray  # of rows in a pool
_NONE = np.empty(0, np.int64)


class CachedPrompts:
    """What is kept of prompts for the passes over a backbone."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone, self.pool = backbone, Pool()
        self.cached: dict[RowSource, Places] = {}
        self.waiting: Collection[SharedSource] = ()  # what only canvases in the queue will attend to

    @functools.cached_property
    def most(self) -> int:
        """The rows that may be kept: they take half of the memory that is free when this is first asked."""
        config, weight = self._backbone.model.config, self._backbone.model.lm_head.weight
        row = 2 * config.num_hidden_layers * config.key_heads * config.head_width * weight.element_size()
        free = torch.cuda.mem_get_info(weight.device)[0] if weight.is_cuda else machine.memory()
        return free // 2 // row

    @property
    def are_shared(self) -> bool:
        """Whether all canvases of a sentence attend to the same rows of its prompt."""
        return self._backbone.attention == PREFIX

    def sources(self, canvas: Canvas) -> list[SharedSource]:
        """The sequences that compute the rows of a canvas's prompts; none if its own passes do."""
        return canvas.shared_sources if self.are_shared else canvas.sources

    def rows(self, prompt: Sequence[int]) -> int:
        """The rows of a prompt that are kept."""
        return len(prompt) - int(self._backbone.shifted)

    def forget(self, batches: Sequence[Batch]) -> None:
        """Free the rows that no canvas of the batches attends to; those that only canvases in the queue will attend to,
        as soon as half of the room is taken."""
        if not (self.cached or self.pool.size):
            return
        needed: set[RowSource] = set()
        for batch in batches:
            for name, canvas in zip(batch.names, batch.canvases, strict=True):
                needed.update(self.sources(canvas) or [own(name, prompt) for prompt in canvas.prompts])
        later = self.waiting if 2 * self.pool.used <= self.most else ()
        self.cached = {source: places for source, places in self.cached.items() if source in needed or source in later}
        self.pool.keep(self.cached.values())

    def empty(self, batches: Sequence[Batch] = ()) -> None:
        """Free all but what the canvases of the batches cannot compute again."""
        self.cached = {source: places for source, places in self.cached.items() if isinstance(source[1], tuple)}
        self.forget(batches)

    def layout(self, whole: Batch) -> PassLayout:
        """What a pass over the canvases of ``whole`` runs.

        The rows of a source come from a canvas of the pass that is the same sequence, or else from a sequence of their
        own behind the canvases.
        """
        shared = [next(iter(self.sources(canvas)), None) for canvas in whole.canvases]
        needed = dict.fromkeys(source for source in shared if source)
        if not needed and all(canvas.reuse == NO_REUSE for canvas in whole.canvases):
            return PassLayout.of(whole)
        sources: list[RowSource | None] = [*shared]  # where the prompt of each canvas comes from, if not from its pass
        giving: dict[RowSource, int] = {}  # which sequence computes the rows of a source
        for place, (name, canvas, step) in enumerate(zip(whole.names, whole.canvases, whole.steps, strict=True)):
            if sources[place] is not None:
                continue
            prompt = tuple(canvas.prompt)
            if canvas.reuse.refresh:
                kept = own(name, prompt)
                if canvas.reuse.attends(step, kept in self.cached):
                    sources[place] = kept
                else:
                    giving[kept] = place
            elif whole.masks[place] == canvas.length:
                given = prompt, canvas.length
                if (given in needed or canvas.reuse.is_source) and given not in self.cached:
                    giving[given] = place
        # What no canvas of the pass computes is run behind them.
        alone = [source for source in needed if source not in self.cached and source not in giving]
        giving |= {source: place for place, source in enumerate(alone, len(whole))}
        behind = []
        for prompt, slots in alone:
            seen = prompt[: self.rows(prompt)] if self.are_shared else (*prompt, *[whole.mask_id] * slots)
            behind.append(list(seen))
        cached = dict(self.cached)
        for source in giving:
            if source not in cached:
                cached[source] = self.pool.take(self.rows(source[0]))
        saved = {source: (place, cached[source]) for source, place in giving.items()}
        attended = [cached[source] if source else _NONE for source in sources]
        # Dummy rows where a CPU's BLAS would take another path.
        few = FULL_KERNEL - len(whole.ids) + sum(map(len, attended)) - sum(map(len, behind))
        if few > 0:
            behind.append([0] * few)
        return PassLayout.of(whole, attended, behind, saved)

    def keep(self, layout: PassLayout) -> None:
        """Know what a pass has saved: it is done."""
        self.cached |= {source: places for source, (_, places) in layout.saved.items()}


def own(name: Any, prompt: PromptIds) -> OwnSource:
    """The rows of a prompt that the passes over the canvas of that name compute, for no other."""
    return prompt, (name,)


class PassBudget:
    """What the next pass takes, canvas by canvas: ``rows`` to run, at most ``budget``, and the rows ``kept`` when it is
    done.

    A canvas counts with its prompt without the source, also in passes that do not look at that.
    """

    def __init__(self, prompts: CachedPrompts, budget: int, batch: Batch) -> None:
        self._prompts, self._budget = prompts, budget
        self._kept: set[RowSource] = set(prompts.cached)
        self._whole: set[RowSource] = set()  # canvases of the pass that run all their rows
        self.rows, self.kept = 0, prompts.pool.used if prompts.cached else 0
        self.beyond: list[bool] = []
        for state in zip(batch.canvases, batch.steps, batch.names, strict=True):
            self.add(*state)
            self.beyond.append(bool(self.beyond) and not self._fits(self.rows, self.kept))

    def take(self, queue: Queue) -> list[tuple[Any, Canvas]]:
        """The canvases of the queue that the budget has room for, by name; at least one where nothing else runs."""
        named = []
        while queue.heap:
            canvas = queue.heap[0][-1]
            if self.rows and not self._fits(*self.after(canvas)):
                break
            self.add(canvas)
            named.append(queue.take())
        return named

    def _fits(self, rows: int, kept: int) -> bool:
        return rows <= self._budget and (kept == 0 or kept <= self._prompts.most)  # `most` asks for the free memory

    def add(self, canvas: Canvas, step: int = 0, name: Any = None) -> None:
        """Count a canvas in: its ``step``-th pass."""
        self.rows, self.kept = self.after(canvas, step, name)
        sources = self._prompts.sources(canvas)
        self._kept.update(sources)
        if not (step or sources or canvas.tokens or canvas.reuse.refresh):
            self._whole.add((tuple(canvas.prompt), canvas.length))

    def after(self, canvas: Canvas, step: int = 0, name: Any = None) -> tuple[int, int]:
        """Rows to run and rows kept with a canvas more; one that comes from the queue needs no name."""
        rows, kept, sources = self.rows, self.kept, self._prompts.sources(canvas)
        for prompt in canvas.prompts:
            rows += len(prompt) + canvas.length
            is_kept = canvas.reuse.refresh is not None and own(name, prompt) in self._prompts.cached
            if sources or (canvas.reuse.refresh and canvas.reuse.attends(step, is_kept)):
                rows -= self._prompts.rows(prompt)
            elif canvas.reuse.refresh and not is_kept:
                kept += self._prompts.rows(prompt)
        for source in set(sources) - self._kept:
            prompt, slots = source
            rows += 0 if source in self._whole else len(prompt) + slots
            kept += self._prompts.rows(prompt)
        return rows, kept


@dataclass(frozen=True)
class PassLayout:
    """The sequences of a pass: those of the canvases, then those that are run for what is kept of them.

    ``ids`` and ``position`` are those of its rows, ``lengths`` and ``counts`` the rows and the masked slots of each
    sequence. ``at`` names the row of the pass for each row of the canvases; -1: it is not run. The rows of a sequence
    attend to the places ``cached`` before one another; without any ``cached``, none does. ``saved``: of a source the
    sequence whose first rows it is, and the places of their keys and values.
    """

    ids: np.ndarray
    position: np.ndarray
    lengths: tuple[int, ...]
    counts: tuple[int, ...]
    at: np.ndarray
    cached: Sequence[Places]
    saved: Mapping[RowSource, tuple[int, Places]]

    @classmethod
    def of(
        cls,
        whole: Batch,
        cached: Sequence[Places] = (),
        behind: Sequence[Sequence[int]] = (),
        saved: Mapping[RowSource, tuple[int, Places]] | None = None,
    ) -> Self:
        """Of each canvas the rows that its ``cached`` places do not stand for, and the sequences ``behind`` of these
        tokens."""
        skipped = np.array([len(places) for places in cached] or [0] * len(whole.canvases))
        run = whole.position >= skipped[whole.canvas]
        lengths = [canvas.size - skip for canvas, skip in zip(whole.canvases, skipped.tolist(), strict=True)]
        tokens = np.fromiter(itertools.chain.from_iterable(behind), np.int64)
        return cls(
            np.concatenate([whole.ids[run], tokens]),
            np.concatenate([whole.position[run], *map(np.arange, map(len, behind))]),
            (*lengths, *map(len, behind)),
            (*whole.masks, *[0] * len(behind)),
            np.where(run, np.cumsum(run) - 1, -1),
            [*cached, *[_NONE] * len(behind)],
            saved or {},
        )

    def packed(
        self, pool: Pool, columns: Sequence[np.ndarray], device: torch.device
    ) -> tuple[Packed, list[torch.Tensor]]:
        """The sequences on the device, and the ``columns``; all go there in one copy."""
        kept: list[np.ndarray] = []
        if self.cached:
            starts = np.cumsum((0, *self.lengths))
            rows = [starts[sequence] + np.arange(len(places)) for sequence, places in self.saved.values()]
            into = [places for _, places in self.saved.values()]
            keys = placed(np.array(self.lengths), np.array([len(places) for places in self.cached]))
            kept = [*(np.concatenate([_NONE, *column]) for column in (rows, into, self.cached)), *keys]
        ids, position, *tensors = upload([self.ids, self.position, *kept, *columns], device)
        of_pool, others = tensors[: len(kept)], tensors[len(kept) :]
        cached = CachedRows(pool, tuple(map(len, self.cached)), *of_pool) if self.cached else None
        return Packed(ids[None], position[None], self.lengths, kept=cached), others


def placed(lengths: np.ndarray, cached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where in the keys of all sequences the cached ones stand, and where the own ones: sequence k has ``cached[k]``
    keys of the former, then ``lengths[k]`` of the latter."""
    parts = np.stack([cached, lengths], 1).ravel()
    own = np.repeat(np.arange(len(parts)) % 2 == 1, parts)
    return np.flatnonzero(~own), np.flatnonzero(own)
