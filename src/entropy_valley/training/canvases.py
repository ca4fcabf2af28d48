"""From tokenised pairs to masked micro-batches, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from entropy_valley.training import data, loss, masking
from entropy_valley.training.passes import ONE_PASS, Passes

if TYPE_CHECKING:
    from entropy_valley.training.settings import Loss


@dataclass(frozen=True)
class Canvases:
    """The micro-batches of each step: a pure function of (seed, step).

    Masks are drawn for the whole batch before it is cut into micro-batches. The cut therefore changes only the order of
    floating-point sums, and with ``eos_padding: batch`` or ``time: minibatch`` what these settings refer to.
    """

    pairs: data.Pairs
    order: data.Batches
    settings: Loss
    mask_id: int
    seed: int
    passes: Passes = ONE_PASS
    all_mask_share: float = 0.0

    def __getitem__(self, step: int) -> list[loss.MicroBatch]:
        indices, random = self.order[step], masking.stream(self.seed, "canvas", step)
        lengths, padding = self.pairs.lengths[indices], self.settings.eos_padding
        sizes = self.passes.sizes(lengths, padding)
        extra = data.eos_padding(lengths, padding, sizes)
        layout = data.lay_out(self.pairs, indices, extra)
        times = self._times(sizes, random)
        masked = torch.zeros_like(layout.is_target)
        masked[layout.is_target] = masking.draw_masks(times, layout.targets, random)
        weights = loss.slot_weights(
            masked, layout.owner, times, layout.targets, self.settings.weight, self.settings.normaliser
        )
        corrupted = torch.where(masked, self.mask_id, layout.tokens)
        return loss.micro_batches(layout, corrupted, masked, weights, sizes)

    def _times(self, sizes: list[int], random: torch.Generator) -> torch.Tensor:
        options = {"eps": self.settings.eps, "all_mask_share": self.all_mask_share}
        if self.settings.time == "sequence":
            return masking.draw_times(sum(sizes), random, **options)
        return masking.draw_times(len(sizes), random, **options).repeat_interleave(torch.tensor(sizes))
