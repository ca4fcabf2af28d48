"""Keys and values of rows that outlive a pass: a later pass attends to them and does not compute them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch


class Pool:
    """Keys and values of rows, layer by layer, in places that are used again.

    A layer's are two tensors (places, heads, head width), made at the first pass and larger when more are needed.
    """

    def __init__(self) -> None:
        self._layers: dict[int, list[torch.Tensor]] = {}
        self._free = np.empty(0, np.int64)
        self.size = 0

    @property
    def used(self) -> int:
        """The places taken."""
        return self.size - len(self._free)

    def take(self, count: int) -> np.ndarray:
        """So many free places."""
        if count > len(self._free):
            grown = self.used + count + self.size // 4  # a layer that grows is copied: not at every pass
            self._free = np.concatenate([np.arange(self.size, grown), self._free])
            self.size = grown
        taken, self._free = self._free[-count:] if count else self._free[:0], self._free[: len(self._free) - count]
        return taken

    def keep(self, places: Sequence[np.ndarray]) -> None:
        """Let all other places be taken again."""
        self._free = np.setdiff1d(np.arange(self.size), np.concatenate([self._free[:0], *places]))

    def shrink(self) -> None:
        """Give back the memory behind the last place taken."""
        taken = np.setdiff1d(np.arange(self.size), self._free)
        self.size = int(taken[-1]) + 1 if len(taken) else 0
        self._free = self._free[self._free < self.size]
        for tensors in self._layers.values():
            tensors[:] = [tensor[: self.size].clone() for tensor in tensors]

    def layer(self, number: int, like: torch.Tensor) -> list[torch.Tensor]:
        """The keys and the values of a layer; ``like`` is a tensor of rows, (any, heads, head width), of the model."""
        # Not like[:0]: that would keep the whole of ``like`` in memory.
        tensors = self._layers.setdefault(number, [like.new_empty(0, *like.shape[1:]) for _ in range(2)])
        missing = self.size - len(tensors[0])
        if missing > 0:
            tensors[:] = [torch.cat([tensor, tensor.new_empty(missing, *like.shape[1:])]) for tensor in tensors]
        return tensors


@dataclass(frozen=True)
class Kept:
    """What a pass keeps in a pool, and what its sequences attend to there.

    The rows ``saved`` of the pass go to the places ``into``. A sequence attends to the next ``known[k]`` of the places
    ``of``, and to its own rows behind them: in the keys of all sequences together, the former stand at ``of_keys`` and
    the latter at ``own_keys``. Tensors of int64, on the model's device.
    """

    pool: Pool
    known: tuple[int, ...]
    saved: torch.Tensor
    into: torch.Tensor
    of: torch.Tensor
    of_keys: torch.Tensor
    own_keys: torch.Tensor

    def gather(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The keys and values of all sequences, (keys, heads, width); see :class:`.attention.Source`."""
        gathered = []
        for kept, own in zip(self.pool.layer(layer, key), (key, value), strict=True):
            kept.index_copy_(0, self.into, own.index_select(0, self.saved))
            joined = own.new_empty(len(self.of_keys) + len(self.own_keys), *own.shape[1:])
            joined.index_copy_(0, self.own_keys, own)
            gathered.append(joined.index_copy_(0, self.of_keys, kept.index_select(0, self.of)))
        return tuple(gathered)

    def filled(self, rows: int) -> Kept:
        """The same behind which so many rows follow that attend to nothing kept."""
        first = len(self.of_keys) + len(self.own_keys)
        more = torch.arange(first, first + rows, device=self.own_keys.device)
        return dataclasses.replace(self, own_keys=torch.cat([self.own_keys, more]))


def placed(lengths: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where in the keys of all sequences the known ones stand, and where the own ones: sequence k has ``known[k]``
    keys of the former, then ``lengths[k]`` of the latter."""
    parts = np.stack([known, lengths], 1).ravel()
    own = np.repeat(np.arange(len(parts)) % 2 == 1, parts)
    return np.flatnonzero(~own), np.flatnonzero(own)
