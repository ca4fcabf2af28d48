"""The LM head as the engine reads it: how many rows and vocabulary entries at once, and in which precision."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear, pad

from entropy_valley.model.packing import FULL_KERNEL

# Rows and vocabulary entries whose logits are held at once: on a CPU a block fits its cache, and the weights of the
# head are read once for many rows; a GPU takes all entries in one product, which one fused kernel then reduces.
BLOCK = {"cpu": (512, 4096), "cuda": (1024, 2**20)}


@dataclass(frozen=True)
class Head:
    """``module`` gives logits (rows, vocabulary) from states (rows, width): a linear layer, or one with an adapter.

    With ``float32`` its logits are float32 where states and weights are bfloat16: sums of the same products, which are
    not rounded to bfloat16 in the end. ``rows``: how many each product has, whatever is read;
    None: as many as are read.
    """

    module: Any
    float32: bool = False
    rows: int | None = None

    def chunks(self, states: torch.Tensor) -> Sequence[torch.Tensor]:
        """The rows whose logits are held at once; zeros fill the last up to ``rows``, or to a full kernel's."""
        if self.rows:
            return pad(states, (0, 0, 0, -len(states) % self.rows)).split(self.rows)
        most, _ = BLOCK[states.device.type]
        states = pad(states, (0, 0, 0, max(0, FULL_KERNEL - states.shape[0])))
        return states.tensor_split(-(-states.shape[0] // most))  # even: none falls below the full kernel

    def blocks(self, states: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """(first vocabulary entry, logits) of each block; of a head that is more than its weights, all in one.

        The logits are float32, but perhaps rounded to the dtype of ``states``.
        """
        wider = self.float32 and states.dtype != torch.float32
        if type(self.module) is not torch.nn.Linear:
            yield 0, (self._in_float32(states.float()) if wider else self.module(states)).float()
            return
        _, entries = BLOCK[states.device.type]
        blocks = itertools.count(step=entries), self.module.weight.split(entries)
        biases = itertools.repeat(None) if self.module.bias is None else self.module.bias.split(entries)
        product = float32_product if wider else linear
        for first, weight, bias in zip(*blocks, biases, strict=False):
            yield first, product(states, weight, bias).float()

    @functools.cached_property
    def _in_float32(self) -> Any:
        return copy.deepcopy(self.module).float()


def float32_product(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """``states`` (rows, width) times ``weight`` (entries, width) of a half precision, in float32."""
    if states.device.type == "cuda":  # cuBLAS adds in float32 anyway, and here writes what it has
        product = torch.mm(states, weight.t(), out_dtype=torch.float32)
        return product if bias is None else product.add_(bias)
    return linear(states.float(), weight.float(), None if bias is None else bias.float())
