"""Reverse SIG, of the paper's order sweep: what depends least on the source is said first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entropy_valley.engine.order import SourceGuided

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Slots


class ReverseSig(SourceGuided):
    """The slots of the smallest SIG come first."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.sig
