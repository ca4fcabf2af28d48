"""Entropy-weighted SIG, of the paper's order sweep, which does not define it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entropy_valley.engine.order import SourceGuided

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Slots


class EntropyWeightedSig(SourceGuided):
    """The slots of the largest SIG · e^-H come first: those that depend on the source and are sure of what it says.

    e^H, the perplexity, is the number of tokens that a slot still wavers between; a certain slot keeps its whole SIG.
    """

    def scores(self, slots: Slots) -> torch.Tensor:
        return -slots.sig * (-slots.values.entropy).exp()
