"""Cutting a step's batch into micro-batches: by tokens, and evenly over the processes."""

from __future__ import annotations

import bisect
import sys
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Passes:
    """Passes of at most ``tokens`` tokens (``eos_padding`` included), distributed over ``ranks``."""

    tokens: int = sys.maxsize
    ranks: int = 1

    def sizes(self, lengths: torch.Tensor, padding: int | str = 0) -> list[int]:
        """The number of sequences of each micro-batch (0 allowed), for a batch with these ``lengths``, shortest first
        if padded to the longest of a pass.

        Each rank runs the same, smallest possible number of micro-batches. Their largest is then made as small as
        possible, so that no rank waits long. A sequence of more than ``tokens`` runs alone.
        """
        uniform = padding == "batch"
        costs = (lengths if uniform else lengths + padding).tolist()
        limit = min(self.tokens, len(costs) * max(costs))
        count = -(-len(_filled(costs, limit, uniform)) // self.ranks) * self.ranks
        even = bisect.bisect_left(range(limit), True, key=lambda tokens: len(_filled(costs, tokens, uniform)) <= count)
        sizes = _filled(costs, even, uniform)
        return sizes + [0] * (count - len(sizes))


ONE_PASS = Passes()


def _filled(costs: list[int], limit: int, uniform: bool) -> list[int]:
    """Sizes of consecutive parts of at most ``limit``; with ``uniform`` a part is padded to its last sequence."""
    sizes, total = [0], 0
    for cost in costs:
        total = (sizes[-1] + 1) * cost if uniform else total + cost
        if sizes[-1] and total > limit:
            sizes.append(0)
            total = cost
        sizes[-1] += 1
    return sizes
