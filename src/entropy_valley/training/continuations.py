"""From tokenised pairs to micro-batches for autoregressive families, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from entropy_valley.training import data, loss
from entropy_valley.training.passes import ONE_PASS, Passes


@dataclass(frozen=True)
class Continuations:
    """The micro-batches of each step, a pure function of (seed, step): next-token prediction of target and EOS.

    The counterpart of :class:`~entropy_valley.training.canvases.Canvases` for causal families. Both give the same pairs
    in each step of fine-tuning if both tokenizers drop the same pairs as too long. The prompt is not predicted. Of
    ``training.loss`` only ``normaliser`` applies ("token" and "masked" agree): nothing is masked, so there is no
    ``time``, ``eps`` or ``weight``; and ``eos_padding`` would teach nothing, since decoding stops at the first EOS.
    """

    pairs: data.Pairs
    order: data.Batches
    normaliser: str
    seed: int
    passes: Passes = ONE_PASS

    def __getitem__(self, step: int) -> list[loss.MicroBatch]:
        indices = self.order[step]
        layout = data.lay_out(self.pairs, indices, torch.zeros_like(indices))
        ones = torch.ones(len(indices))
        weights = loss.slot_weights(
            layout.is_target, layout.owner, ones, layout.targets, weight="none", normaliser=self.normaliser
        )
        sizes = self.passes.sizes(self.pairs.lengths[indices])
        return loss.micro_batches(layout, layout.tokens, layout.is_target, weights, sizes)
