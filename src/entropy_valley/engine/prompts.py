"""Prompts that are not computed in every pass: the keys and values of their rows are kept between passes.

Under prefix attention this is exact: the rows of a prompt never see a canvas, so they are computed once for all passes
over the sentence. Else it is the approximation that a canvas asks for (``refresh``, ``beside``): its slots attend to
rows of the prompt that saw an earlier canvas.

What is kept is freed as soon as no canvas that waits or runs needs it. A prompt that is needed again is computed again.
The row that slot 0 of a shifted family is read from belongs to the slots: it is computed in every pass.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from entropy_valley import limits
from entropy_valley.engine.layout import Layout, Places, Saved
from entropy_valley.model.packing import FULL_KERNEL, Pool
from entropy_valley.model.prompt import PREFIX

if TYPE_CHECKING:
    from entropy_valley.engine.batch import Batch
    from entropy_valley.engine.queue import Canvas, Prompt, Source
    from entropy_valley.model.load import Backbone

_NONE = np.empty(0, np.int64)


class Prompts:
    """What is kept of prompts for the passes over a backbone."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone, self.pool = backbone, Pool()
        self.known: dict[Source, Places] = {}
        self._waiting: Collection[Source] = ()

    @functools.cached_property
    def most(self) -> int:
        """The rows that may be kept: they take half of the memory that is free when this is first asked."""
        config, weight = self._backbone.model.config, self._backbone.model.lm_head.weight
        heads = config.num_key_value_heads * self._backbone.model.model.layers[0].self_attn.head_dim
        row = 2 * config.num_hidden_layers * heads * weight.element_size()
        free = torch.cuda.mem_get_info(weight.device)[0] if weight.is_cuda else limits.memory()
        return free // 2 // row

    @property
    def are_shared(self) -> bool:
        """Whether all canvases of a sentence attend to the same rows of its prompt."""
        return self._backbone.attention == PREFIX

    def sources(self, canvas: Canvas) -> list[Source]:
        """The sequences that compute the rows of a canvas's prompts; none if its own passes do."""
        return canvas.sources(self.are_shared)

    def rows(self, prompt: Sequence[int]) -> int:
        """The rows of a prompt that are kept."""
        return len(prompt) - int(self._backbone.shifted)

    def forget(self, batches: Sequence[Batch], waiting: Collection[Source]) -> None:
        """Free the rows that no canvas of the batches attends to; those that only canvases in the queue (``waiting``)
        will attend to, as soon as half of the room is taken."""
        self._waiting = waiting
        if not self.pool.size:
            return
        needed = {source for batch in batches for canvas in batch.canvases for source in self.sources(canvas)}
        later = waiting if 2 * self.pool.used <= self.most else ()
        self.known = {source: places for source, places in self.known.items() if source in needed or source in later}
        own = [places for batch in batches for kept in batch.kept for places in kept.values()]
        self.pool.keep([*self.known.values(), *own])

    def empty(self, batches: Sequence[Batch] = ()) -> None:
        """Free all but what the canvases of the batches cannot compute again, and give the memory back."""
        self.known.clear()
        self.forget(batches, self._waiting)
        self.pool.shrink()

    def layout(self, whole: Batch) -> Layout:
        """What a pass over the canvases of ``whole`` runs.

        The rows of a source come from a canvas of the pass that is the same sequence, or else from a sequence of their
        own behind the canvases.
        """
        sources = [next(iter(self.sources(canvas)), None) for canvas in whole.canvases]
        needed = dict.fromkeys(source for source in sources if source)
        if not (needed or self._waiting or any(canvas.refresh or canvas.is_source for canvas in whole.canvases)):
            return Layout.of(whole)
        all_masked = {source: place for place, source in enumerate(_all_masked(whole, sources)) if source}
        given = {
            source: place
            for source, place in all_masked.items()
            if source not in self.known
            and (source in needed or source in self._waiting or whole.canvases[place].is_source)
        }
        alone = [source for source in needed if source not in self.known and source not in given]
        giving = given | {source: place for place, source in enumerate(alone, len(whole))}
        saved = [self._saved(place, source[0], self.known, source) for source, place in giving.items()]
        known = self.known | {one.name: one.places for one in saved}
        own, renewed = self._own(whole)
        attended = [known[source] if source else places for source, places in zip(sources, own, strict=True)]
        behind = [self._tokens(source, whole.mask_id) for source in alone]
        few = FULL_KERNEL - whole.size + sum(map(len, attended)) - sum(map(len, behind))
        return Layout.with_known(whole, attended, [*behind, *[[0] * few] * (few > 0)], [*saved, *renewed])

    def _tokens(self, source: Source, mask_id: int) -> list[int]:
        """The sequence of a source: its prompt, and the masks that this sees."""
        prompt, slots = source
        return list(prompt[: self.rows(prompt)]) if self.are_shared else [*prompt, *[mask_id] * slots]

    def _saved(self, sequence: int, prompt: Prompt, holder: dict[Any, Places], name: Any) -> Saved:
        places = holder[name] if name in holder else self.pool.take(self.rows(prompt))
        return Saved(sequence, places, holder, name)

    def _own(self, whole: Batch) -> tuple[list[Places], list[Saved]]:
        """What each canvas attends to of its own earlier passes, and what is renewed in this one."""
        if self.are_shared:  # exact whatever a canvas asks for
            return [_NONE] * len(whole), []
        known, renewed = [], []
        for place, (canvas, step, kept) in enumerate(whole.states()):
            prompt = tuple(canvas.prompt)
            if renews(canvas, step, prompt in kept):
                renewed.append(self._saved(place, prompt, kept, prompt))
                known.append(_NONE)
            else:
                known.append(kept.get(prompt, _NONE))
        return known, renewed


def renews(canvas: Canvas, step: int, is_kept: bool) -> bool:
    """Whether a canvas's ``step``-th pass computes the rows of its prompt for later ones."""
    return canvas.refresh is not None and not (is_kept and step % canvas.refresh)


def _all_masked(whole: Batch, sources: Sequence[Source | None]) -> Iterator[Source | None]:
    """What each canvas may be the source of: the all-mask ones that are run whole; None for the others."""
    for canvas, source, masks in zip(whole.canvases, sources, whole.masks, strict=True):
        is_whole = source is None and canvas.refresh is None
        yield (tuple(canvas.prompt), canvas.length) if is_whole and masks == canvas.length else None


class Load:
    """What the next pass takes, canvas by canvas: ``rows`` to run, and the rows ``kept`` when it is done.

    A canvas counts with its prompt without the source, also in passes that do not look at that.
    """

    def __init__(self, prompts: Prompts) -> None:
        self._prompts, self._seen = prompts, set(prompts.known)
        self.rows, self.kept = 0, prompts.pool.used

    def add(self, canvas: Canvas, step: int = 0, own: Container[Prompt] = ()) -> None:
        """Count a canvas in: its ``step``-th pass, its ``own`` prompts being kept."""
        self.rows, self.kept = self.after(canvas, step, own)
        self._seen.update((*self._prompts.sources(canvas), *_own_source(canvas)))

    def after(self, canvas: Canvas, step: int = 0, own: Container[Prompt] = ()) -> tuple[int, int]:
        """Rows to run and rows kept with a canvas more."""
        rows, kept, sources = self.rows, self.kept, self._prompts.sources(canvas)
        for prompt in canvas.prompts:
            rows += len(prompt) + canvas.length
            if sources or not (canvas.refresh is None or renews(canvas, step, prompt in own)):
                rows -= self._prompts.rows(prompt)
            elif canvas.refresh is not None and prompt not in own:
                kept += self._prompts.rows(prompt)
        for prompt, slots in set(sources) - self._seen:
            rows, kept = rows + len(prompt) + slots, kept + self._prompts.rows(prompt)
        for prompt, _ in set(_own_source(canvas)) - self._seen:
            kept += self._prompts.rows(prompt)
        return rows, kept


def _own_source(canvas: Canvas) -> list[Source]:
    """The source that a canvas itself is for later ones, if it is one."""
    return [(tuple(canvas.prompt), canvas.length)] if canvas.is_source else []
