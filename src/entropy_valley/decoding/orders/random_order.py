"""Random order, a control of the paper's order sweep; seeded per sentence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from entropy_valley import files
from entropy_valley.settings import Section

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Slots


class Random(Section):
    """A permutation of the slots, drawn once per canvas from ``seed``, the prompt's tokens and the length.

    It does not depend on the batch, the step or the checkpoint: all training runs of a backbone reveal a sentence in
    the same order.
    """

    seed: int = Field(1, description="of the permutations")

    def scores(self, slots: Slots) -> torch.Tensor:
        drawn = [score for canvas in slots.canvases for score in priorities(self.seed, canvas.prompt, canvas.length)]
        lengths = slots.position.new_tensor([canvas.length for canvas in slots.canvases])
        first = lengths.cumsum(0) - lengths
        return slots.values.entropy.new_tensor(drawn)[first[slots.canvas] + slots.position]


def priorities(seed: int, prompt: Sequence[int], length: int) -> list[float]:
    """One number in [0, 1) per slot; the lowest is revealed first. Python promises the same numbers everywhere."""
    draw = random.Random(int(files.digest([seed, list(prompt), length]), 16))
    return [draw.random() for _ in range(length)]
