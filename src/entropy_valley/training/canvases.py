"""From tokenised pairs to micro-batches, step by step: masked canvases, or continuations for causal families."""

from __future__ import annotations

from collections.abc import Callable
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
    floating-point sums, and with ``eos_padding: batch`` or ``time: minibatch`` what these settings refer to. ``prefix``
    says how many rows of a prompt of so many tokens attend to one another alone; None: all rows attend to everything.
    """

    pairs: data.Pairs
    order: data.Batches
    settings: Loss
    mask_id: int
    seed: int
    passes: Passes = ONE_PASS
    all_mask_share: float = 0.0
    prefix: Callable[[int], int] | None = None

    def __getitem__(self, step: int) -> list[loss.MicroBatch]:
        indices, random = self.order[step], masking.stream(self.seed, "canvas", step)
        groups = data.draw_groups(len(indices), self.settings.micro_batch, self.seed, "groups", step)
        layout, sizes = self._layout(indices, groups)
        times = self._times(sizes, random)
        masked = torch.zeros_like(layout.is_target)
        masked[layout.is_target] = masking.draw_masks(times, layout.targets, random, self.settings.at_least_one)
        weights = loss.slot_weights(
            masked, layout.owner, times, layout.targets, self.settings.weight, self.settings.normaliser, groups
        )
        corrupted = torch.where(masked, self.mask_id, layout.tokens)
        prefixes = [self.prefix(prompt) for prompt in layout.prompts.tolist()] if self.prefix else []
        return loss.micro_batches(layout, corrupted, masked, weights, sizes, prefixes)

    def _layout(self, indices: torch.Tensor, groups: torch.Tensor) -> tuple[data.Layout, list[int]]:
        """The padded batch, and the number of sequences of each pass."""
        lengths, padding = self.pairs.lengths[indices], self.settings.eos_padding
        if self.settings.padding_read:
            extra = data.read_padding(lengths, groups)
            sizes = self.passes.sizes(lengths + extra)
            return data.lay_out(self.pairs, indices, extra, predicted=False), sizes
        sizes = self.passes.sizes(lengths, padding)
        return data.lay_out(self.pairs, indices, data.eos_padding(lengths, padding, sizes)), sizes

    def _times(self, sizes: list[int], random: torch.Generator) -> torch.Tensor:
        settings = self.settings
        options = {"eps": settings.eps, "all_mask_share": self.all_mask_share, "antithetic": settings.antithetic}
        if settings.time == "sequence":
            return masking.draw_times(sum(sizes), random, **options)
        return masking.draw_times(len(sizes), random, **options).repeat_interleave(torch.tensor(sizes))


@dataclass(frozen=True)
class Continuations:
    """The micro-batches of each step, a pure function of (seed, step): next-token prediction of target and EOS.

    The counterpart of :class:`Canvases` for causal families. Both give the same pairs in each step of fine-tuning if
    both tokenizers drop the same pairs as too long. The prompt is not predicted. Of ``training.loss`` only
    ``normaliser`` ("token" and "masked" agree) and ``micro_batch`` apply: nothing is masked, so there is no ``time``,
    ``eps`` or ``weight``; and ``eos_padding`` would teach nothing, since decoding stops at the first EOS.
    """

    pairs: data.Pairs
    order: data.Batches
    normaliser: str
    seed: int
    passes: Passes = ONE_PASS
    micro_batch: int = 4

    def __getitem__(self, step: int) -> list[loss.MicroBatch]:
        indices = self.order[step]
        layout = data.lay_out(self.pairs, indices, torch.zeros_like(indices))
        ones = torch.ones(len(indices))
        groups = data.draw_groups(len(indices), self.micro_batch, self.seed, "groups", step)
        weights = loss.slot_weights(
            layout.is_target, layout.owner, ones, layout.targets, "none", self.normaliser, groups
        )
        sizes = self.passes.sizes(self.pairs.lengths[indices])
        return loss.micro_batches(layout, layout.tokens, layout.is_target, weights, sizes)
