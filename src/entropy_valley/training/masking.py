"""Which slots of a training canvas are masked: a pure function of seed and step, without global state."""

from __future__ import annotations

from typing import Any

import torch

from entropy_valley import files


def seed_of(*key: Any) -> int:
    """A 63-bit seed for torch from a JSON-able key such as ``(seed, "dropout", step)``."""
    return int(files.digest(key)[:16], 16) >> 1


def stream(*key: Any) -> torch.Generator:
    """A random stream for each key, so that a run can resume at any step."""
    return torch.Generator().manual_seed(seed_of(*key))


def draw_times(
    count: int, random: torch.Generator, *, eps: float, all_mask_share: float = 0.0, antithetic: bool = True
) -> torch.Tensor:
    """Masking rates t ~ U(eps, 1), (count,), stratified: one in each of ``count`` equal strata, in random order.

    All draws have the same offset in their strata. Without ``antithetic`` all are independent. A share
    ``all_mask_share`` becomes t = 1, an all-mask canvas: for the demo's pre-training only, not for fine-tuning.
    """
    if antithetic:
        uniform = (torch.randperm(count, generator=random) + torch.rand(1, generator=random)) / count
    else:
        uniform = torch.rand(count, generator=random)
    whole = torch.rand(count, generator=random) < all_mask_share
    return (eps + (1 - eps) * uniform).masked_fill(whole, 1.0)


def draw_masks(
    times: torch.Tensor, targets: torch.Tensor, random: torch.Generator, at_least_one: bool = True
) -> torch.Tensor:
    """m ~ Bernoulli(t) for every target slot, ``at_least_one`` in each sequence; bool, (sum of ``targets``,).

    ``targets`` holds |y| of each sequence, with its EOS. The slot with the smallest draw is always masked: if no draw
    is below t, this is one slot drawn uniformly.
    """
    owner = torch.repeat_interleave(torch.arange(len(targets)), targets)
    draws = torch.rand(len(owner), generator=random)
    if not at_least_one:
        return draws < times[owner]
    smallest = torch.ones(len(targets)).scatter_reduce(0, owner, draws, "amin")
    return draws <= torch.maximum(times, smallest)[owner]
