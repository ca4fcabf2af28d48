"""Entropy and argmax of the LM head's rows, never holding more than a block of rows × vocabulary at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from entropy_valley.engine.compiling import compiled

if TYPE_CHECKING:
    from entropy_valley.engine.head import Head

_GROUP = 64


class SlotValues(NamedTuple):
    """One value per row: most probable token (int64), entropy in nats, and the log-probabilities of that token and of
    the EOS (all float64)."""

    token: torch.Tensor
    entropy: torch.Tensor
    logprob: torch.Tensor
    eos: torch.Tensor


class Part(NamedTuple):
    """What some vocabulary entries say of each row: their largest logit and its token; over the others, with
    d = z - that logit <= 0, the sums of e^d and of d e^d (both float64); and the EOS's logit, -inf without it."""

    best: torch.Tensor
    token: torch.Tensor
    others: torch.Tensor
    weighted: torch.Tensor
    eos: torch.Tensor


def slot_values(head: Head, states: torch.Tensor, mask_id: int, eos_id: int) -> SlotValues:
    """What ``head`` says of each row of ``states`` (rows, width), the mask token's logit being -inf.

    A row's values do not depend on the rows beside it: on one CPU thread they are bit-equal in any company.
    """
    values = [_values(head, chunk, mask_id, eos_id) for chunk in head.chunks(states)]
    return SlotValues(*(torch.cat(column)[: states.shape[0]] for column in zip(*values, strict=True)))


def _values(head: Head, states: torch.Tensor, mask_id: int, eos_id: int) -> SlotValues:
    part = reduction(states.device.type)
    parts = (part(block, first, mask_id - first, eos_id - first) for first, block in head.blocks(states))
    return finish(functools.reduce(merge, parts))


def finish(whole: Part) -> SlotValues:
    """With s the sum over all but the argmax: log p = -log(1 + s), H = log(1 + s) - E[d].

    No term cancels another, so nearly certain slots keep meaningful entropies where -sum p log p has only the
    rounding of 1 + s left; and float64 sums of the float32 terms tell apart slots that are almost equally uncertain.
    Among both kinds the reveal order is decided.
    """
    surprise = torch.log1p(whole.others)
    entropy = surprise - whole.weighted / (1 + whole.others)
    return SlotValues(whole.token, entropy, -surprise, whole.eos.double() - whole.best - surprise)


def reduction(device: str) -> Callable[..., Part]:
    """:func:`_part`, on a GPU compiled into one kernel that reads the logits once."""
    return compiled(_part, device)


def _part(logits: torch.Tensor, first: int, mask: int, eos: int) -> Part:
    """Reduce ``logits`` (rows, entries from ``first`` on), overwriting them; ``mask`` and ``eos`` are the two tokens'
    columns, where they are among these."""
    if 0 <= mask < logits.shape[1]:
        logits[:, mask] = torch.finfo(logits.dtype).min  # its exp is 0 as of -inf, and 0 · distance stays 0
    best, token = _largest(logits)
    end = logits[:, eos].clone() if 0 <= eos < logits.shape[1] else torch.full_like(best[:, 0], -torch.inf)
    distance = logits.sub_(best)
    weight = torch.exp(distance).scatter_(1, token, 0.0)
    others = weight.double().sum(-1)
    weighted = weight.mul_(distance).double().sum(-1)
    return Part(best.squeeze(-1), token.squeeze(-1) + first, others, weighted, end)


def _largest(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest value of each row and the first place that has it, both (rows, 1).

    First the best group, then the best of it: torch finds places far more slowly than values.
    """
    if logits.shape[1] % _GROUP:
        return logits.max(-1, keepdim=True)
    groups = logits.unflatten(1, (-1, _GROUP))
    group = groups.amax(-1).argmax(-1, keepdim=True)
    # Not take_along_dim: compiled, it makes another graph for each number of rows.
    best, place = groups.gather(1, group[..., None].expand(-1, 1, _GROUP)).squeeze(1).max(-1, keepdim=True)
    return best, group * _GROUP + place


def merge(one: Part, other: Part) -> Part:
    """Two parts as one. Of equal logits the earlier token is the argmax; the loser's joins the others."""
    wins = other.best > one.best
    best, token, others, weighted, _ = (torch.where(wins, new, old) for old, new in zip(one, other, strict=True))
    _, _, lost, lost_weighted, _ = (torch.where(wins, old, new) for old, new in zip(one, other, strict=True))
    gap = (one.best.double() - other.best).abs()
    weight = torch.exp(-gap)
    others, weighted = others + weight * (1 + lost), weighted + weight * (lost_weighted - gap * (1 + lost))
    return Part(best, token, others, weighted, torch.maximum(one.eos, other.eos))
