"""Entropy and argmax of the LM head's rows, never holding more than a block of rows × vocabulary at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn.functional import linear, pad

from entropy_valley.backbone.last_layer import FULL_KERNEL
from entropy_valley.engine.compiling import compiled

# Rows and vocabulary entries whose logits are held at once: on a CPU a block fits its cache, and the weights of the
# head are read once for many rows; a GPU takes all entries in one product, which one fused kernel then reduces.
_BLOCK = {"cpu": (512, 4096), "cuda": (1024, 2**20)}
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


def slot_values(head: Any, states: torch.Tensor, mask_id: int, eos_id: int) -> SlotValues:
    """What ``head`` says of each row of ``states`` (rows, width), the mask token's logit being -inf.

    A row's values do not depend on the rows beside it: on one CPU thread they are bit-equal in any company.
    """
    values = [_values(head, chunk, mask_id, eos_id) for chunk in chunks(states)]
    return SlotValues(*(torch.cat(column)[: states.shape[0]] for column in zip(*values, strict=True)))


def chunks(states: torch.Tensor) -> Sequence[torch.Tensor]:
    """The rows whose logits are held at once; zeros fill the last up to what a product's full kernel needs."""
    most, _ = _BLOCK[states.device.type]
    states = pad(states, (0, 0, 0, max(0, FULL_KERNEL - states.shape[0])))
    return states.tensor_split(-(-states.shape[0] // most))  # even: none falls below the full kernel


def _values(head: Any, states: torch.Tensor, mask_id: int, eos_id: int) -> SlotValues:
    part = reduction(states.device.type)
    parts = (part(block.float(), first, mask_id - first, eos_id - first) for first, block in logit_blocks(head, states))
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


def logit_blocks(head: Any, states: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """(first vocabulary entry, logits) of each block; of a head that is more than its weights, all in one."""
    if type(head) is not torch.nn.Linear:
        yield 0, head(states)
        return
    _, entries = _BLOCK[states.device.type]
    blocks = itertools.count(step=entries), head.weight.split(entries)
    biases = itertools.repeat(None) if head.bias is None else head.bias.split(entries)
    for first, weight, bias in zip(*blocks, biases, strict=False):
        yield first, linear(states, weight, bias)


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
