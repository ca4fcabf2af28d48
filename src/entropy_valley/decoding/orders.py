"""The reveal orders of the paper. A new one is a class and a line here, or a user's own ``module:Class``."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from entropy_valley import files, plugins
from entropy_valley.engine.order import SourceGuided, looks_at_distractor
from entropy_valley.model.transfer import upload
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
    """Minimum entropy in the first ⌊p · T⌋ of T steps, SIG-first in the others.

    The steps that reveal nothing are spread evenly over the T, as :func:`moments` says. With ``stepwise_kl`` it is the
    first ⌊p · n⌋ of the n steps that reveal anything: the same where p · T is a whole number. ``p`` is taken as the
    decimal that the config has; in the paper it is 0.25, 0.50 and 0.75.
    """

    p: Share = Field(description="the share of the steps by entropy")

    @property
    def in_time(self) -> bool:
        return looks_at_distractor(self)

    def needs_sourceless(self, step: int, steps: int) -> bool:
        return step >= self._by_entropy(steps, 0)

    def scores(self, slots: Slots) -> torch.Tensor:
        bounds = np.array([self._by_entropy(len(canvas.counts), canvas.budget) for canvas in slots.canvases])
        (bounds,) = upload([bounds], slots.step.device)
        by_entropy = (slots.step < bounds)[slots.canvas]
        return slots.values.entropy if slots.sig is None else slots.values.entropy.where(by_entropy, -slots.sig)

    @functools.cached_property
    def _share(self) -> Fraction:
        return Fraction(str(self.p))

    def _by_entropy(self, steps: int, budget: int) -> int:
        """How many of the ``steps`` that reveal anything are among the first p · T; T = 0: the share of them alone."""
        return steps * (self._share * budget // 1) // budget if budget else self._share * steps // 1


class EntropyWeightedSig(SourceGuided):
    """From the most certain slots at the first step over to those of the largest SIG at the last.

    Of α · SIG / max SIG + (1 - α) · (1 - H scaled from 0 to 1) the largest come first: both over the slots of the
    canvas that are masked, a negative SIG counting as 0, α = t / (T - 1) with the :func:`moments` t. With
    ``stepwise_kl`` it is the largest SIG · e^-H: e^H, the perplexity, is the number of tokens that a slot still wavers
    between, and a certain slot keeps its whole SIG.
    """

    @property
    def in_time(self) -> bool:
        return looks_at_distractor(self)

    def scores(self, slots: Slots) -> torch.Tensor:
        sig, entropy = slots.sig, slots.values.entropy
        if not looks_at_distractor(self):
            return -sig * (-entropy).exp()
        sig = sig.clamp(min=0)
        share = moments(slots)[slots.canvas]
        low = -_largest(slots, -entropy)
        certain = 1 - _over(entropy - low, _largest(slots, entropy) - low)
        return -(share * _over(sig, _largest(slots, sig)) + (1 - share) * certain)


def _largest(slots: Slots, numbers: torch.Tensor) -> torch.Tensor:
    """For each slot the largest number of its canvas."""
    unset = numbers.new_full((len(slots.canvases),), -math.inf)
    return unset.scatter_reduce(0, slots.canvas, numbers, "amax")[slots.canvas]


def _over(numbers: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
    """Numbers divided by the largest; 0 where that is 0."""
    return (numbers / most).where(most > 0, 0.0)


def moments(slots: Slots) -> torch.Tensor:
    """t / (T - 1) of each canvas's step: 0 at the first of the T steps, 1 at the last.

    t is the step, from 0, at which floors reveal: of the n steps that reveal anything, the k-th is at ⌈T (k + 1) / n⌉ -
    1. With LLaDA's schedule these come first, and T - n empty ones behind them; this way a canvas has the same result
    under both.
    """
    counts = np.array([len(canvas.counts) for canvas in slots.canvases])
    budgets = np.array([canvas.budget for canvas in slots.canvases])
    counts, budgets = upload([counts, budgets], slots.step.device)
    return (-(-budgets * (slots.step + 1) // counts) - 1).double() / (budgets - 1).clamp(min=1)


class LeftToRight(Section):
    """The first masked slots come first. The model's predictions play no part."""

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.position.double()


class OracleAnchor(Section):
    """The slots that a gold alignment ties to the source come first, from left to right; then minimum entropy.

    An order of the authors' code, an analysis and no system: it knows the reference. Only on canvases of the
    reference's length its slots are those of the reference.
    """

    anchored: ClassVar[bool] = True

    def scores(self, slots: Slots) -> torch.Tensor:
        before = slots.position.double() - slots.position.max() - 1  # entropies are not below 0
        return before.where(slots.sig > 0, slots.values.entropy.double())


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
    "oracle_anchor": OracleAnchor,
    "random": Random,
}


def make_order(name: str, settings: Mapping[str, Any] | None = None) -> Order:
    """The reveal order of that name, built with ``settings`` as keyword arguments; raises InputError."""
    return plugins.make("reveal order", ORDERS, name, settings or {}, ("scores",))
