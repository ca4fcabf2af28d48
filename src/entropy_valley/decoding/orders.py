"""The reveal orders of the paper. A new one is a class and a line here, or a user's own ``module:Class``."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import Field

from entropy_valley import files, plugins
from entropy_valley.backbone.transfer import upload
from entropy_valley.engine.order import SourceGuided
from entropy_valley.late import numpy as np
from entropy_valley.settings import Section, Share

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.order import Order, Slots


class MinimumEntropy(Section):
    """The slots whose distribution has the lowest entropy come first."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.values.entropy


class SigFirst(SourceGuided):
    """The slots of the largest SIG come first."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return -slots.sig


class ReverseSig(SourceGuided):
    """The slots of the smallest SIG come first."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.sig


class Hybrid(SourceGuided):
    """Minimum entropy in the first ⌊p · n⌋ of the n steps that reveal anything, SIG-first in the others.

    ``p`` is taken as the decimal that the config has; in the paper it is 0.25, 0.50 and 0.75.
    """

    p: Share = Field(description="the share of the steps by entropy")

    def needs_sourceless(self, step: int, steps: int) -> bool:
        return step >= self._by_entropy(steps)

    def scores(self, slots: Slots) -> torch.Tensor:
        bounds = np.array([self._by_entropy(len(canvas.counts)) for canvas in slots.canvases])
        (bounds,) = upload([bounds], slots.step.device)
        by_entropy = (slots.step < bounds)[slots.canvas]
        return slots.values.entropy if slots.sig is None else slots.values.entropy.where(by_entropy, -slots.sig)

    @functools.cached_property
    def _share(self) -> Fraction:
        return Fraction(str(self.p))

    def _by_entropy(self, steps: int) -> int:
        return self._share * steps // 1


class EntropyWeightedSig(SourceGuided):
    """The slots of the largest SIG · e^-H come first: those that depend on the source and are sure of what it says.

    The paper does not define it. e^H, the perplexity, is the number of tokens that a slot still wavers between; a
    certain slot keeps its whole SIG.
    """

    def scores(self, slots: Slots) -> torch.Tensor:
        return -slots.sig * (-slots.values.entropy).exp()


class LeftToRight(Section):
    """The first masked slots come first. The model's predictions play no part."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.position.double()


class Random(Section):
    """A permutation of the slots, drawn once per canvas from ``seed``, the prompt's tokens and the length.

    It does not depend on the batch, the step or the checkpoint: all training runs of a backbone reveal a sentence in
    the same order.
    """

    seed: int = Field(1, description="of the permutations")

    def scores(self, slots: Slots) -> torch.Tensor:
        drawn = [_drawn(self.seed, tuple(canvas.prompt), canvas.length) for canvas in slots.canvases]
        lengths, device = np.array([canvas.length for canvas in slots.canvases]), slots.position.device
        (first,), (drawn,) = upload([np.cumsum(lengths) - lengths], device), upload([np.concatenate(drawn)], device)
        return drawn[first[slots.canvas] + slots.position]


def priorities(seed: int, prompt: Sequence[int], length: int) -> list[float]:
    """One number in [0, 1) per slot; the lowest is revealed first. Python promises the same numbers everywhere."""
    draw = random.Random(int(files.digest([seed, list(prompt), length]), 16))
    return [draw.random() for _ in range(length)]


@functools.lru_cache(maxsize=4096)  # the canvases of a pass: their next steps ask for the same numbers
def _drawn(seed: int, prompt: tuple[int, ...], length: int) -> np.ndarray:
    return np.array(priorities(seed, prompt, length))


ORDERS: dict[str, type] = {
    "med": MinimumEntropy,
    "sig_first": SigFirst,
    "reverse_sig": ReverseSig,
    "hybrid": Hybrid,
    "entropy_weighted_sig": EntropyWeightedSig,
    "left_to_right": LeftToRight,
    "random": Random,
}


def make_order(name: str, settings: Mapping[str, Any] | None = None) -> Order:
    """The reveal order of that name, built with ``settings`` as keyword arguments; raises InputError."""
    return plugins.make("reveal order", ORDERS, name, settings or {}, ["scores"])
