"""Hybrid MED→SIG, of the paper's order sweep, with p = 0.25, 0.50 and 0.75 there."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field

from entropy_valley.engine.order import SourceGuided
from entropy_valley.settings import Share

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Slots


class Hybrid(SourceGuided):
    """Minimum entropy in the first ⌊p · n⌋ of the n steps that reveal anything, SIG-first in the others.

    ``p`` is taken as the decimal that the config has.
    """

    p: Share = Field(description="the share of the steps by entropy")

    def needs_sourceless(self, step: int, steps: int) -> bool:
        return step >= self._by_entropy(steps)

    def scores(self, slots: Slots) -> torch.Tensor:
        bounds = slots.step.new_tensor([self._by_entropy(len(canvas.counts)) for canvas in slots.canvases])
        by_entropy = (slots.step < bounds)[slots.canvas]
        return slots.values.entropy if slots.sig is None else slots.values.entropy.where(by_entropy, -slots.sig)

    @cached_property
    def _share(self) -> Fraction:
        return Fraction(str(self.p))

    def _by_entropy(self, steps: int) -> int:
        return self._share * steps // 1
