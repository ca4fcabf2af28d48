"""The rows of a pass: which of a canvas's are run, what they attend to beside one another, and what is kept of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from entropy_valley.model.packing import Kept, Packed, Pool, placed
from entropy_valley.model.transfer import upload

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.batch import Batch

Places = np.ndarray  # of rows in a pool
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Saved:
    """The first rows of a sequence, whose keys and values go to ``places``; ``holder`` has these under ``name``."""

    sequence: int
    places: Places
    holder: dict[Any, Places]
    name: Any


@dataclass(frozen=True)
class Layout:
    """The sequences of a pass: those of the canvases, then those that are run for what is kept of them.

    ``ids`` and ``position`` are those of its rows, ``lengths`` and ``counts`` the rows and the masked slots of each
    sequence. ``at`` names the row of the pass for each row of the canvases; -1: it is not run. The rows of a sequence
    attend to the places ``known`` before one another; without any ``known``, none does.
    """

    ids: np.ndarray
    position: np.ndarray
    lengths: tuple[int, ...]
    counts: tuple[int, ...]
    at: np.ndarray
    known: Sequence[Places] = ()
    saved: Sequence[Saved] = ()

    @classmethod
    def of(cls, whole: Batch) -> Self:
        """All rows of the canvases, and nothing kept."""
        sizes = tuple(canvas.size for canvas in whole.canvases)
        return cls(whole.ids, whole.position, sizes, tuple(whole.masks), np.arange(whole.size))

    @classmethod
    def with_known(
        cls, whole: Batch, known: Sequence[Places], behind: Sequence[Sequence[int]], saved: Sequence[Saved]
    ) -> Self:
        """Of each canvas the rows that its ``known`` places do not stand for, and the sequences of these tokens."""
        skipped = np.array([len(places) for places in known])
        run = whole.position >= skipped[whole.canvas]
        lengths = [canvas.size - skip for canvas, skip in zip(whole.canvases, skipped.tolist(), strict=True)]
        tokens = np.fromiter(itertools.chain.from_iterable(behind), np.int64)
        return cls(
            np.concatenate([whole.ids[run], tokens]),
            np.concatenate([whole.position[run], *map(np.arange, map(len, behind))]),
            (*lengths, *map(len, behind)),
            (*whole.masks, *[0] * len(behind)),
            np.where(run, np.cumsum(run) - 1, -1),
            [*known, *[_NONE] * len(behind)],
            saved,
        )

    def packed(
        self, pool: Pool, columns: Sequence[np.ndarray], device: torch.device
    ) -> tuple[Packed, list[torch.Tensor]]:
        """The sequences on the device, and the ``columns``; all go there in one copy."""
        given = [self.ids, self.position, *(self._kept() if self.known else ())]
        ids, position, *tensors = upload([*given, *columns], device)
        of_pool, others = tensors[: len(given) - 2], tensors[len(given) - 2 :]
        kept = Kept(pool, tuple(map(len, self.known)), *of_pool) if self.known else None
        return Packed(ids[None], position[None], self.lengths, kept=kept), others

    def _kept(self) -> tuple[np.ndarray, ...]:
        """The columns of :class:`Kept`."""
        starts = np.cumsum((0, *self.lengths))
        rows = [starts[one.sequence] + np.arange(len(one.places)) for one in self.saved]
        into = [one.places for one in self.saved]
        keys = placed(np.array(self.lengths), np.array([len(places) for places in self.known]))
        return *(np.concatenate([_NONE, *column]) for column in (rows, into, self.known)), *keys

    def keep(self) -> None:
        """Let the holders of what was saved know it: the pass is done."""
        for one in self.saved:
            one.holder[one.name] = one.places
