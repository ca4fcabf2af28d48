"""Sequences of different lengths in one pass: no padding, attention inside each of them and nothing between."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

BIDIRECTIONAL, CAUSAL = "packed_bidirectional", "packed_causal"


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


@contextlib.contextmanager
def using_attention(model: Any, name: str) -> Iterator[None]:
    """Let a model attend by another of transformers' registered attentions while the block runs."""
    ours = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(ours)


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
    causal: bool = False,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention inside each segment of (1, heads, rows, head width) tensors; returns (1, rows, heads, width).

    It is full, or where ``causal`` to a row itself and those before it. Runs of equal segment lengths become one
    batch, so a pass sorted by length costs few kernel calls.
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
        attended = scaled_dot_product_attention(
            *batch, dropout_p=dropout, is_causal=causal, scale=scaling, enable_gqa=grouped
        )
        pieces.append(attended.transpose(1, 2).flatten(0, 1))
    return torch.cat(pieces).unsqueeze(0), None


def register_attention(name: str, attention: Callable[..., Any]) -> None:
    """Make an attention known to transformers; q and k reach it in the dtype of v, whatever they were rotated in."""

    def cast(
        module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any, **options: Any
    ) -> Any:
        return attention(module, query.to(value.dtype), key.to(value.dtype), value, *rest, **options)

    AttentionInterface.register(name, cast)


# Transformers builds no mask for an attention it has no mask function for: what is causal is what is asked for here.
register_attention(BIDIRECTIONAL, packed_attention)
register_attention(CAUSAL, functools.partial(packed_attention, causal=True))
