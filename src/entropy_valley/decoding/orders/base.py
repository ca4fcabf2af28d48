"""What a reveal order is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from entropy_valley.decoding.entropy import SlotValues

if TYPE_CHECKING:
    import torch

    from entropy_valley.decoding.tasks import Canvas


@dataclass(frozen=True)
class Slots:
    """The masked slots of all canvases of a pass, one value per slot, canvas by canvas in slot order.

    ``canvas`` (index into ``canvases``), ``position`` (slot, from 0) and ``values`` are per slot; ``step`` is per
    canvas: how many of its revealing steps are done. Steps that reveal nothing are no steps here.
    """

    canvases: Sequence[Canvas]
    canvas: torch.Tensor
    position: torch.Tensor
    step: torch.Tensor
    values: SlotValues


class Order(Protocol):
    """Scores masked slots; of each canvas the lowest are revealed, ties going to the lower position.

    The store knows an order by the name that the config gives it: one that has changed needs another name.
    """

    def scores(self, slots: Slots) -> torch.Tensor:
        """One float per masked slot."""
        ...
