"""SIG: how much a slot depends on the source, KL(p(y_i | source, canvas) ‖ p(y_i | no source, canvas)) in nats.

The logits are float32, all sums float64, and no more than a block of rows × vocabulary is held at once. A divergence
of nearly equal distributions is a small difference of large terms, unless each of its terms is small: with
d = log p - log q, the sum of p d is the sum of p d + q - p, for p and q both sum to one, and none of these is negative.
Blocks of the vocabulary are joined by the chain rule: the divergence of the whole is the mean of that inside the parts,
weighted with p, and that between the parts' two masses. Again no term cancels another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import logsigmoid

from entropy_valley.engine import entropy
from entropy_valley.engine.compiling import compiled
from entropy_valley.engine.entropy import SlotValues, slot_values

if TYPE_CHECKING:
    from entropy_valley.engine.head import Head

_ROWS = 16


class _Part(NamedTuple):
    """Some vocabulary entries of each row (all float64): the log of their unnormalised mass under p and under q, and
    the divergence of the two distributions over them."""

    p: torch.Tensor
    q: torch.Tensor
    divergence: torch.Tensor


def sourced_values(
    head: Head,
    states: torch.Tensor,
    sourceless: torch.Tensor,
    paired: torch.Tensor,
    others: torch.Tensor,
    mask_id: int,
    eos_id: int,
    backward: bool = False,
) -> tuple[SlotValues, torch.Tensor]:
    """What ``head`` says of each row of ``states`` (rows, width), and its SIG, the mask token being in no distribution.

    ``paired`` are the places of the rows that are compared, and ``others`` the other ones, both ascending;
    ``sourceless`` are the states of the former without the source. The SIG of the others is NaN. Bit-equal in any
    company, as :func:`slot_values` is, whose values these are.
    """
    chunks = zip(*map(head.chunks, (states[paired], sourceless)), strict=True)
    pairs = [_values(head, own, other, mask_id, eos_id, backward) for own, other in chunks]
    *columns, sig = (torch.cat(column)[: len(sourceless)] for column in zip(*pairs, strict=True))
    if len(sourceless) == len(states):
        return SlotValues(*columns), sig
    rest = slot_values(head, states[others], mask_id, eos_id)
    place = torch.cat([paired, others]).argsort()
    columns = (torch.cat(pair)[place] for pair in zip(columns, rest, strict=True))
    return SlotValues(*columns), torch.cat([sig, torch.full_like(rest.entropy, torch.nan)])[place]


def _values(
    head: Head, states: torch.Tensor, sourceless: torch.Tensor, mask_id: int, eos_id: int, backward: bool
) -> tuple[torch.Tensor, ...]:
    """The columns of SlotValues and the SIG, from one product of the head with each of the two."""
    divergence, reduction = _divergence(states.device.type), entropy.reduction(states.device.type)
    whole = sides = None
    blocks = (head.blocks(rows) for rows in (states, sourceless))
    for (first, own), (_, other) in zip(*blocks, strict=True):
        between = divergence(*((other, own) if backward else (own, other)), mask_id - first)
        part = reduction(own, first, mask_id - first, eos_id - first)  # last: it overwrites the logits
        whole = part if whole is None else entropy.merge(whole, part)
        sides = between if sides is None else _merge(sides, between)
    return (*entropy.finish(whole), sides.divergence.clamp(min=0))


def _divergence(device: str) -> Callable[..., _Part]:
    """:func:`_part`, on a GPU compiled so that nothing of float64 lies beside the logits."""
    return _part_by_part if device == "cpu" else compiled(_part, device)


def _part_by_part(p: torch.Tensor, q: torch.Tensor, mask: int) -> _Part:
    """:func:`_part` of a few rows at a time, whose float64 terms fit a CPU's cache."""
    pieces = -(-len(p) // _ROWS)
    parts = [_part(*pair, mask) for pair in zip(p.tensor_split(pieces), q.tensor_split(pieces), strict=True)]
    return _Part(*map(torch.cat, zip(*parts, strict=True)))


def _part(p: torch.Tensor, q: torch.Tensor, mask: int) -> _Part:
    """Compare two rows of logits (rows, entries) without column ``mask``, where it is among these."""
    p, q = p.double(), q.double()
    if 0 <= mask < p.shape[1]:
        p[:, mask] = q[:, mask] = torch.finfo(torch.float32).min  # its exp is 0 as of -inf, and differences stay finite
    mass, other = p.logsumexp(-1, keepdim=True), q.logsumexp(-1, keepdim=True)
    return _Part(mass.squeeze(-1), other.squeeze(-1), _terms(p - mass, q - other).sum(-1))


def _terms(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """p d + q - p from log p and log q, without cancellation or overflow: the larger of p and q times a function of |d|
    that is exact to the second order."""
    d = p - q
    size = d.abs()
    decay = torch.expm1(-size)
    small = size + decay
    return torch.maximum(p, q).exp() * torch.where(d >= 0, small, -(small + size * decay))


def _merge(one: _Part, other: _Part) -> _Part:
    """Two parts as one, by the chain rule."""
    p, q = one.p - other.p, one.q - other.q
    first, second = logsigmoid(p), logsigmoid(-p)  # log of each part's share of p's mass
    between = _terms(first, logsigmoid(q)) + _terms(second, logsigmoid(-q))
    inside = first.exp() * one.divergence + second.exp() * other.divergence
    # Not logaddexp, whose last bit on a CPU depends on where a row lies among the others.
    masses = (torch.maximum(a, b) - logsigmoid((a - b).abs()) for a, b in ((one.p, other.p), (one.q, other.q)))
    return _Part(*masses, between + inside)
