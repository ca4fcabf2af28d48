"""Entropy and argmax of the LM head's rows, never holding all rows × vocabulary at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

_CHUNK = {"cpu": 2**20, "cuda": 2**27}  # logits held at once; a CPU's fit its cache
_LEAST_ROWS = 64  # fewer would read a large head from memory for too little work
_FULL_KERNEL = 4  # rows: below this BLAS takes another path, whose sums round otherwise


class SlotValues(NamedTuple):
    """One value per row: most probable token (int64), entropy in nats and its log-probability (both float64)."""

    token: torch.Tensor
    entropy: torch.Tensor
    logprob: torch.Tensor


def slot_values(head: Any, states: torch.Tensor, mask_id: int) -> SlotValues:
    """What ``head`` says of each row of ``states`` (rows, width), the mask token's logit being -inf.

    A row's values do not depend on the rows beside it: on one CPU thread they are bit-equal in any company.
    """
    rows = states.shape[0]
    if rows < _FULL_KERNEL:
        states = torch.cat([states, states.new_zeros(_FULL_KERNEL - rows, states.shape[1])])
    size = max(_LEAST_ROWS, _CHUNK[states.device.type] // head.weight.shape[0])
    chunks = states.tensor_split(-(-states.shape[0] // size))  # even: none falls below the full kernel
    values = [_values(head(chunk).float(), mask_id) for chunk in chunks]
    return SlotValues(*(torch.cat(column)[:rows] for column in zip(*values, strict=True)))


def _values(logits: torch.Tensor, mask_id: int) -> SlotValues:
    """With d = z - max z <= 0 and s = sum of e^d over all but the argmax: log p = -log(1 + s), H = log(1 + s) - E[d].

    No term cancels another, so nearly certain slots keep meaningful entropies where -sum p log p has only the
    rounding of 1 + s left; and float64 sums of the float32 terms tell apart slots that are almost equally uncertain.
    Among both kinds the reveal order is decided.
    """
    logits[:, mask_id] = torch.finfo(logits.dtype).min  # its exp is 0 as of -inf, and 0 · distance stays 0
    best, token = logits.max(-1, keepdim=True)
    distance = logits.sub_(best)
    weight = torch.exp(distance).scatter_(1, token, 0.0)
    others = weight.sum(-1, dtype=torch.float64)
    surprise = torch.log1p(others)
    entropy = surprise - weight.mul_(distance).sum(-1, dtype=torch.float64) / (1 + others)
    return SlotValues(token.squeeze(-1), entropy, -surprise)
