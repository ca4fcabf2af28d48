"""Strict left to right, a control of the paper's order sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entropy_valley.settings import Section

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Slots


class LeftToRight(Section):
    """The first masked slots come first. The model's predictions play no part."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.position.double()
