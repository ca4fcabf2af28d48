"""Sequences of different lengths in one pass: no padding, bidirectional inside each, nothing between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

ATTENTION = "packed_bidirectional"


@dataclass(frozen=True)
class Packed:
    """Sequences laid end to end. ``offsets[k]`` is the row at which sequence k starts."""

    input_ids: torch.Tensor  # (1, rows)
    position_ids: torch.Tensor  # (1, rows), from 0 in each sequence
    lengths: tuple[int, ...]
    offsets: tuple[int, ...]


def pack(sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Packed:
    """Lay token-id sequences end to end; neighbours of equal length share one attention call."""
    lengths = tuple(len(sequence) for sequence in sequences)
    flat = list(itertools.chain.from_iterable(sequences))
    positions = list(itertools.chain.from_iterable(range(length) for length in lengths))
    return Packed(
        torch.tensor([flat], device=device),
        torch.tensor([positions], device=device),
        lengths,
        (0, *itertools.accumulate(lengths))[:-1],
    )


def hidden_states(model: Any, packed: Packed) -> torch.Tensor:
    """Last hidden states after the final norm, (rows, width), of a stock ``…ForCausalLM`` made by this room."""
    output = model.model(
        input_ids=packed.input_ids, position_ids=packed.position_ids, segments=packed.lengths, use_cache=False
    )
    return output.last_hidden_state[0]


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    segments: Sequence[int],
    dropout: float = 0.0,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Full attention inside each segment of (1, heads, rows, head width) tensors; returns (1, rows, heads, width).

    Runs of equal segment lengths become one batch, so a pass sorted by length costs few kernel calls.
    """
    runs = [(length, len(list(run))) for length, run in itertools.groupby(segments)]
    # Split and not slices: the gradient of a slice is a whole buffer of zeros for each run.
    parts = zip(
        *(tensor[0].split([length * count for length, count in runs], 1) for tensor in (query, key, value)), strict=True
    )
    grouped = query.shape[1] != key.shape[1]
    pieces = []
    for (length, count), part in zip(runs, parts, strict=True):
        batch = [tensor.unflatten(1, (count, length)).transpose(0, 1) for tensor in part]
        attended = scaled_dot_product_attention(*batch, dropout_p=dropout, scale=scaling, enable_gqa=grouped)
        pieces.append(attended.transpose(1, 2).flatten(0, 1))
    return torch.cat(pieces).unsqueeze(0), None


# Transformers builds no mask for an attention it has no mask function for: nothing causal is left.
AttentionInterface.register(ATTENTION, packed_attention)
