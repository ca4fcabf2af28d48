"""SIG-first, of the paper's order sweep: what depends most on the source is said first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entropy_valley.engine.order import SourceGuided

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Slots


class SigFirst(SourceGuided):
    """The slots of the largest SIG come first."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return -slots.sig
