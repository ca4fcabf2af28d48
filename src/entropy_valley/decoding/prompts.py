"""Prompts that are computed once: what is kept of them between passes, and the rows that each pass runs.

Which passes compute a prompt says :class:`.Reuse`. The tensors are in :class:`.Pool`, and :class:`.CachedRows` hands
them to the attention. What is kept is freed as soon as no canvas that waits or runs needs it. A prompt that is needed
again is computed again. The row that slot 0 of a shifted family is read from belongs to the slots: it is computed in
every pass.
"""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from entropy_valley import machine
from entropy_valley.decoding.batch import Array, Batch
from entropy_valley.decoding.canvas import Canvas, Ids, PromptIds, Queue, SharedSource
from entropy_valley.model.attention import CachedRows, Packed, Pool, Rows, upload
from entropy_valley.model.decoder import FULL_KERNEL
from entropy_valley.model.load import Backbone
from entropy_valley.model.prompt import PREFIX

# What computes the rows of a prompt: a sequence, or the passes over one canvas, by its name, which keeps them for
# itself.
OwnSource = tuple[PromptIds, tuple[Any]]
RowSource = SharedSource | OwnSource

Places = Array  # of rows in a pool
_NONE = np.empty(0, np.int64)


class PassLayout(NamedTuple):
    """The sequences of a pass: those of the canvases, then those that are run for what is kept of them.

    ``rows``: those that are read, with the masked slots of each sequence as counts. ``columns`` went to the device in
    the same copy. ``saved``: the places of the keys and values that the pass computes for each source.
    """

    packed: Packed
    rows: Rows
    columns: Sequence[torch.Tensor]
    saved: Mapping[RowSource, Places]


class CachedPrompts:
    """What is kept of prompts for the passes over a backbone. ``are_shared``: all canvases of a sentence attend to the
    same rows of its prompt."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone, self._device, self.pool = backbone, backbone.device, Pool()
        self.are_shared = backbone.attention == PREFIX
        self.cached: dict[RowSource, Places] = {}
        self.waiting: Counter[SharedSource] = Counter()  # what canvases in the queue will attend to

    @functools.cached_property
    def most(self) -> int:
        """The rows that may be kept: they take half of the memory that is free when this is first asked."""
        config, weight = self._backbone.model.config, self._backbone.model.lm_head.weight
        row = 2 * config.num_hidden_layers * config.key_heads * config.head_width * weight.element_size()
        free = torch.cuda.mem_get_info(weight.device)[0] if weight.is_cuda else machine.memory()
        return free // 2 // row

    def rows(self, prompt: Ids) -> int:
        """The rows of a prompt that are kept."""
        return len(prompt) - int(self._backbone.shifted)

    def forget(self, batches: Sequence[Batch]) -> None:
        """Free the rows that no canvas of the batches attends to; those that only canvases in the queue will attend to,
        as soon as half of the room is taken."""
        needed: set[RowSource] = set()
        for batch in batches:
            for name, canvas in zip(batch.names, batch.canvases, strict=True):
                needed.update(canvas.sources or [own(name, prompt) for prompt in canvas.prompts])
        # Cheaper than to compute them again, as long as there is room.
        if self.cached and 2 * self.pool.used <= self.most:
            needed.update(source for source in self.cached if self.waiting[source])  # type: ignore[index]
        self.cached = {source: places for source, places in self.cached.items() if source in needed}
        self.pool.keep(self.cached.values())

    def empty(self, batches: Sequence[Batch] = ()) -> None:
        """Free all but what the canvases of the batches cannot compute again."""
        self.cached = {source: places for source, places in self.cached.items() if isinstance(source[1], tuple)}
        self.forget(batches)

    def layout(self, whole: Batch, read: Array, *columns: Array) -> PassLayout:
        """What a pass over the canvases of ``whole`` runs, on the device; ``read`` are the rows of it that are read."""
        sources, giving, behind = self._sources(whole)
        places = dict(self.cached)
        for source in giving:
            if source not in places:
                places[source] = self.pool.take(self.rows(source[0]))
        attended = [places[source] if source else _NONE for source in sources]
        # Of each canvas the rows run that nothing kept stands for.
        skipped = np.array(list(map(len, attended)))
        run = whole.position >= skipped[whole.canvas]
        if giving or skipped.any():
            # Dummy rows where a CPU's BLAS would take another path.
            few = FULL_KERNEL - int(run.sum()) - sum(map(len, behind))
            behind += [[0] * few] if few > 0 else []
        sizes = np.bincount(whole.canvas[run]).tolist()
        lengths, counts = (*sizes, *map(len, behind)), (*whole.masks, *[0] * len(behind))
        ids = np.concatenate([whole.ids[run], *(np.array(tokens, np.int64) for tokens in behind)])
        position = np.concatenate([whole.position[run], *map(np.arange, map(len, behind))])
        at = (np.cumsum(run) - 1)[read]  # the same rows in the pass
        kept: list[Array] = []
        if giving or skipped.any():
            attended += [_NONE] * len(behind)
            # The first rows of a sequence that computes a source go to its places.
            starts = np.cumsum((0, *lengths))
            saved = [starts[sequence] + np.arange(len(places[source])) for source, sequence in giving.items()]
            into = [places[source] for source in giving]
            kept = [np.concatenate([_NONE, *column]) for column in (saved, into, attended)]
            kept += placed(np.array(lengths), np.array(list(map(len, attended))))
        tensors = upload([ids, position, at, *columns, *kept], self._device)
        first = 3 + len(columns)
        cached = CachedRows(self.pool, tuple(map(len, attended)), *tensors[first:]) if kept else None
        packed = Packed(tensors[0][None], tensors[1][None], lengths, kept=cached)
        saved_places = {source: places[source] for source in giving}  # known as cached when the pass is done
        return PassLayout(packed, Rows(tensors[2], counts), tensors[3:first], saved_places)

    def _sources(self, whole: Batch) -> tuple[list[RowSource | None], dict[RowSource, int], list[list[int]]]:
        """Where the prompt of each canvas comes from, if not from its own pass; which sequence of the pass computes the
        rows of a source; and the sequences that run ``behind`` the canvases, because none of these is the same."""
        # Both prompts of a canvas have a source or none has: the first one says which.
        shared = [next(iter(canvas.sources), None) for canvas in whole.canvases]
        needed = dict.fromkeys(source for source in shared if source)
        sources: list[RowSource | None] = [*shared]
        giving: dict[RowSource, int] = {}
        for place, (name, canvas, step) in enumerate(zip(whole.names, whole.canvases, whole.steps, strict=True)):
            reuse, prompt = canvas.reuse, tuple(canvas.prompt)
            if sources[place] is not None:
                continue
            if reuse.refresh:
                # Its own rows, from an earlier pass over it or, every so many passes, from this one.
                kept = own(name, prompt)
                if reuse.attends(step, kept in self.cached):
                    sources[place] = kept
                else:
                    giving[kept] = place
            elif whole.masks[place] == canvas.length:
                # All masks: it is the very sequence that others want, and spares one behind the canvases.
                given = prompt, canvas.length
                if (given in needed or reuse.is_source) and given not in self.cached:
                    giving[given] = place
        behind: list[list[int]] = []
        for source in needed:
            if source not in self.cached and source not in giving:
                prompt, slots = source
                giving[source] = len(whole) + len(behind)
                tokens = (*prompt, *[whole.mask_id] * slots) if slots else prompt[: self.rows(prompt)]
                behind.append(list(tokens))
        return sources, giving, behind


def own(name: Any, prompt: PromptIds) -> OwnSource:
    """The rows of a prompt that the passes over the canvas of that name compute, for no other."""
    return prompt, (name,)


def placed(lengths: Array, cached: Array) -> tuple[Array, Array]:
    """Where in the keys of all sequences the cached ones stand, and where the own ones: sequence k has ``cached[k]``
    keys of the former, then ``lengths[k]`` of the latter."""
    parts = np.stack([cached, lengths], 1).ravel()
    own = np.repeat(np.arange(len(parts)) % 2 == 1, parts)
    return np.flatnonzero(~own), np.flatnonzero(own)


class PassBudget:
    """What the next pass takes, canvas by canvas: ``rows`` to run, at most ``budget``, and the rows ``kept`` when it is
    done.

    A canvas counts with its prompt without the source, also in passes that do not look at that.
    """

    def __init__(self, prompts: CachedPrompts, budget: int, batch: Batch) -> None:
        self._prompts, self._budget = prompts, budget
        self._kept: set[RowSource] = set(prompts.cached)
        self._whole: set[RowSource] = set()  # canvases of the pass that run all their rows
        self.rows, self.kept = 0, prompts.pool.used
        self.beyond: list[bool] = []
        for canvas, step, name in zip(batch.canvases, batch.steps, batch.names, strict=True):
            self.add(canvas, step, name)
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
        self._kept.update(canvas.sources)
        if not (step or canvas.sources or canvas.tokens or canvas.reuse.refresh):
            self._whole.add((tuple(canvas.prompt), canvas.length))

    def after(self, canvas: Canvas, step: int = 0, name: Any = None) -> tuple[int, int]:
        """Rows to run and rows kept with a canvas more; one that comes from the queue needs no name."""
        rows, kept, sources = self.rows, self.kept, canvas.sources
        for prompt in canvas.prompts:
            rows += len(prompt) + canvas.length
            if sources:
                rows -= self._prompts.rows(prompt)
            elif canvas.reuse.refresh:
                is_kept = own(name, prompt) in self._prompts.cached
                if canvas.reuse.attends(step, is_kept):
                    rows -= self._prompts.rows(prompt)
                elif not is_kept:
                    kept += self._prompts.rows(prompt)
        for source in set(sources) - self._kept:
            prompt, slots = source
            rows += 0 if source in self._whole else len(prompt) + slots
            kept += self._prompts.rows(prompt)
        return rows, kept
