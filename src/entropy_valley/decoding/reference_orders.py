"""The reveal orders in their plainest form, beside :mod:`entropy_valley.decoding.reference`.

Each ranks all slots of one canvas, the lowest score first; distributions are float64 softmaxes over whole rows. The SIG
is the stepwise one; orders by the authors' SIG are in :mod:`entropy_valley.decoding.reference_authors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from entropy_valley.decoding.orders import priorities


@dataclass(frozen=True)
class Step:
    """What an order may look at: the prompt, the canvas's logits (slots, vocabulary; float64, the mask token's -inf),
    those without the source, and the step, from 0, of the ``steps`` that reveal anything."""

    prompt: Sequence[int]
    logits: torch.Tensor
    without_source: Callable[[], torch.Tensor]
    step: int
    steps: int

    def entropy(self) -> torch.Tensor:
        return torch.special.entr(self.logits.softmax(-1)).sum(-1)

    def sig(self, backward: bool) -> torch.Tensor:
        """KL of the two distributions as it is defined; 0 log 0 is 0."""
        p, q = self.logits.log_softmax(-1), self.without_source().log_softmax(-1)
        p, q = (q, p) if backward else (p, q)
        return (p.exp() * (p - q)).nansum(-1)


Rank = Callable[[Step], torch.Tensor]


def med() -> Rank:
    return Step.entropy


def sig_first(backward: bool = False) -> Rank:
    return lambda step: -step.sig(backward)


def reverse_sig(backward: bool = False) -> Rank:
    return lambda step: step.sig(backward)


def entropy_weighted_sig(backward: bool = False) -> Rank:
    return lambda step: -step.sig(backward) / step.entropy().exp()


def hybrid(p: float, backward: bool = False) -> Rank:
    """``p`` times the steps must be exact in binary, or no integer."""
    return lambda step: step.entropy() if step.step < int(p * step.steps) else -step.sig(backward)


def left_to_right() -> Rank:
    return lambda step: torch.arange(len(step.logits))


def random(seed: int = 1) -> Rank:
    return lambda step: torch.tensor(priorities(seed, step.prompt, len(step.logits)))


RANKS: dict[str, Callable[..., Rank]] = {
    "med": med,
    "sig_first": sig_first,
    "reverse_sig": reverse_sig,
    "hybrid": hybrid,
    "entropy_weighted_sig": entropy_weighted_sig,
    "left_to_right": left_to_right,
    "random": random,
}
