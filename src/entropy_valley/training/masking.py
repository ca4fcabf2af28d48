"""Which slots of a training canvas are masked: a pure function of a seed and the step, never of global state."""

from __future__ import annotations

from typing import Any

import torch

from entropy_valley import files


def seed_of(*key: Any) -> int:
    """A 63-bit seed, as torch wants it, of a JSON-able key such as ``(seed, "dropout", step)``."""
    return int(files.digest(key)[:16], 16) >> 1


def stream(*key: Any) -> torch.Generator:
    """A random stream of its own for each key: resuming at a step replays nothing before it."""
    return torch.Generator().manual_seed(seed_of(*key))


def draw_times(count: int, random: torch.Generator, *, eps: float, all_mask_share: float = 0.0) -> torch.Tensor:
    """Masking rates t ~ U(eps, 1), (count,), antithetic: one in each of ``count`` equal strata, in random order.

    All draws share one offset into their strata. ``all_mask_share`` of them become t = 1, a wholly masked canvas:
    only for pre-training a tiny backbone, never for the paper's fine-tuning.
    """
    strata = (torch.randperm(count, generator=random) + torch.rand(1, generator=random)) / count
    whole = torch.rand(count, generator=random) < all_mask_share
    return (eps + (1 - eps) * strata).masked_fill(whole, 1.0)


def draw_masks(times: torch.Tensor, targets: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """m ~ Bernoulli(t) for every target slot, at least one in each sequence; bool, (sum of ``targets``,).

    ``targets`` holds |y| of each sequence, its EOS included. The slot with the smallest draw is masked whatever t
    is: where no draw is below t, that slot is uniform over the sequence.
    """
    owner = torch.repeat_interleave(torch.arange(len(targets)), targets)
    draws = torch.rand(len(owner), generator=random)
    smallest = torch.ones(len(targets)).scatter_reduce(0, owner, draws, "amin")
    return draws <= torch.maximum(times, smallest)[owner]
