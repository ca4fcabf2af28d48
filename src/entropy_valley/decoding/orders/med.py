"""MED: minimum entropy first, the paper's denoising order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entropy_valley.settings import Section

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Slots


class MinimumEntropy(Section):
    """The slots whose distribution has the lowest entropy come first."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.values.entropy
