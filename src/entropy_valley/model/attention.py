"""Columns of numbers to a device and back, with as little waiting as can be.

A GPU works behind its host. A host that copies from ordinary memory, or asks for a value, waits until the GPU has done
all that was asked before. So what goes there goes from pinned memory, in one copy, and what comes back does so at once.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import torch
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

if TYPE_CHECKING:
    import numpy as np
    import torch


def upload(columns: Sequence[np.ndarray], device: torch.device) -> tuple[torch.Tensor, ...]:
    """The columns, all of one dtype, as tensors on ``device``; the host does not wait for the copy."""
    import numpy as np
    import torch

    joined = torch.from_numpy(np.concatenate(columns))
    if device.type == "cuda":
        joined = joined.pin_memory().to(device, non_blocking=True)
    return joined.split([len(column) for column in columns])


def download(columns: Sequence[torch.Tensor]) -> list[np.ndarray]:
    """The columns, numbers that float64 holds exactly, as float64; the host waits once."""
    import numpy as np
    import torch

    joined = torch.cat([column.double() for column in columns]).cpu().numpy()
    return np.split(joined, np.cumsum([len(column) for column in columns])[:-1])


# --- Rotary embedding from tables with angles in full float32; optionally q and k are rotated in float32 too, as LLaDA
# does.


def exact(rotary: type[torch.nn.Module], float32: bool) -> type[torch.nn.Module]:
    """A stock rotary embedding class that looks cos and sin up in tables of all positions.

    The stock class computes angles by a matrix product in every pass. In training this would run in TF32 on a GPU,
    where inverse frequencies keep ten bits: errors up to 0.16 rad at position 1,000, and other angles than in decoding.
    The tables are made once for the context, by plain multiplication in float32, and have the bits that the stock class
    has in full precision. With ``float32`` they stay float32, so q and k are rotated in float32 and not in the dtype of
    the states. The attentions of :mod:`.attention` cast them back.
    """

    class Exact(rotary):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            self._tables: dict[tuple[torch.device, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}

        def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            kind, rows = (x.device, torch.float32 if float32 else x.dtype), position_ids.shape[1]
            # A sequence too long for the context is not refused here; its positions are below the number of rows.
            if kind not in self._tables or len(self._tables[kind][0]) < rows:
                count = max(self.config.max_position_embeddings, 1 << (rows - 1).bit_length())
                self._tables[kind] = self._computed(*kind, count)
            cos, sin = self._tables[kind]
            return cos[position_ids], sin[position_ids]

        @torch.no_grad()
        def _computed(self, device: torch.device, dtype: torch.dtype, count: int) -> tuple[torch.Tensor, torch.Tensor]:
            """cos and sin of the first ``count`` positions, each (positions, head width)."""
            positions = torch.arange(count, dtype=torch.float32, device=device)
            angles = positions[:, None] * self.inv_freq.to(device, torch.float32)
            angles = torch.cat((angles, angles), dim=-1)
            cos, sin = (function(angles) * self.attention_scaling for function in (torch.cos, torch.sin))
            return cos.to(dtype), sin.to(dtype)

    return Exact


# --- Attention inside packed sequences, registered in transformers under two names.

BIDIRECTIONAL, CAUSAL = "packed_bidirectional", "packed_causal"


class Source(Protocol):
    """Where segments have their keys and values from, if they are not the rows of the pass in turn."""

    def gather(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values of all segments, (keys, heads, width), from those of the pass, (rows, heads, width)."""
        ...


@dataclass(frozen=True)
class Segments:
    """The parts of a pass: the next ``queries[k]`` rows that attend do so to the next ``keys[k]`` keys.

    ``apart``: the attention of a segment is computed in the same way whatever the others are.
    """

    keys: tuple[int, ...]
    queries: tuple[int, ...]
    apart: bool = False
    source: Source | None = None

    @functools.cached_property
    def runs(self) -> list[tuple[int, int, int]]:
        """(sequences, queries of each, keys of each) of each run of equal neighbours; ``apart``, of each sequence."""
        pairs = zip(self.queries, self.keys, strict=True)
        if self.apart:
            return [(1, *pair) for pair in pairs]
        return [(len(list(run)), *pair) for pair, run in itertools.groupby(pairs)]

    @functools.cached_property
    def _bounds(self) -> dict[tuple[tuple[int, ...], torch.device], torch.Tensor]:
        return {}

    def bounds(self, lengths: tuple[int, ...], device: torch.device) -> torch.Tensor:
        """The start of each sequence, and the end: (sequences + 1,), int32; computed once for all layers."""
        if (lengths, device) not in self._bounds:
            starts = np.cumsum((0, *lengths), dtype=np.int32)
            (self._bounds[lengths, device],) = upload([starts], device)
        return self._bounds[lengths, device]


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    segments: Segments | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention inside each segment of (1, heads, rows, head width) tensors; returns (1, query rows, heads, width).

    Each row attends to its whole segment; if ``causal``, to itself and the rows before it. In a compiled layer the
    segments are those of :func:`attending`.
    """
    if torch.compiler.is_compiling():
        return _of_a_graph(query, key, value, scaling, causal), None
    return _attended(module, segments, query, key, value, scaling, causal, dropout), None


def _attended(
    module: torch.nn.Module,
    segments: Segments,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scaling: float,
    causal: bool,
    dropout: float = 0.0,
) -> torch.Tensor:
    attend = _by_kernel if has_kernel(query) and not dropout else functools.partial(_by_run, dropout=dropout)
    query, *known = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    if segments.source is not None:
        known = segments.source.gather(module.layer_idx, *known)
    return attend(query, *known, segments, scaling, causal).unsqueeze(0)


_NOW: list[tuple[torch.nn.Module, Segments]] = []  # the attention of the layer that runs, and its segments


@contextlib.contextmanager
def attending(module: torch.nn.Module, segments: Segments) -> Iterator[None]:
    """What a compiled layer attends to: the graph must not know it, for it changes from pass to pass."""
    _NOW.append((module, segments))
    try:
        yield
    finally:
        _NOW.pop()


@torch.library.custom_op("entropy_valley::packed_attention", mutates_args=())
def _of_a_graph(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, causal: bool
) -> torch.Tensor:
    return _attended(*_NOW[-1], query, key, value, scaling, causal).contiguous()


@_of_a_graph.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, causal: bool) -> torch.Tensor:
    return query.new_empty(1, query.shape[2], query.shape[1], value.shape[3])


def has_kernel(query: torch.Tensor) -> bool:
    """Whether torch's variable-length attention runs here: half precision on an Ampere or later GPU."""
    half = query.dtype in (torch.bfloat16, torch.float16)
    return query.is_cuda and half and torch.cuda.get_device_capability(query.device) >= (8, 0)


def _by_kernel(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, segments: Segments, scaling: float, causal: bool
) -> torch.Tensor:
    """One kernel for all segments; tensors are (rows, heads, width).

    The longest segment counts as at least two queries, which is allowed: for one query and grouped heads, the kernel
    puts the heads of a group in the place of queries, and fails where a segment has none.
    """
    return varlen_attn(
        query,
        key,
        value,
        segments.bounds(segments.queries, query.device),
        segments.bounds(segments.keys, query.device),
        max(2, *segments.queries),
        max(segments.keys),
        scale=scaling,
        window_size=(-1, 0) if causal else (-1, -1),
        enable_gqa=query.shape[1] != key.shape[1],
        num_splits=1 if segments.apart else None,
    )


def _by_run(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    segments: Segments,
    scaling: float,
    causal: bool,
    dropout: float = 0.0,
) -> torch.Tensor:
    """One batch for each run of equal segments. On a CPU this takes a third of the time of a padded batch, and a
    seventh of the time of a block-diagonal mask."""
    asked = [count * queries for count, queries, _ in segments.runs]
    known = [count * keys for count, _, keys in segments.runs]
    # Not slices: the gradient of a slice allocates a full buffer of zeros for each run.
    parts = zip(segments.runs, query.split(asked), key.split(known), value.split(known), strict=True)
    grouped = query.shape[1] != key.shape[1]
    pieces = []
    for (count, queries, _), *part in parts:
        if not queries:
            continue
        batch = [tensor.unflatten(0, (count, -1)).transpose(1, 2) for tensor in part]
        attended = scaled_dot_product_attention(
            *batch, dropout_p=dropout, is_causal=causal, scale=scaling, enable_gqa=grouped
        )
        pieces.append(attended.transpose(1, 2).flatten(0, 1))
    return torch.cat(pieces)


@contextlib.contextmanager
def using_attention(model: Any, name: str) -> Iterator[None]:
    """Let a model use another of transformers' registered attentions while the block runs."""
    ours = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(ours)


def register_attention(name: str, attention: Callable[..., Any]) -> None:
    """Register an attention in transformers; it gets q and k in the dtype of v, whatever they were rotated in."""

    def cast(
        module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any, **options: Any
    ) -> Any:
        return attention(module, query.to(value.dtype), key.to(value.dtype), value, *rest, **options)

    AttentionInterface.register(name, cast)


# Transformers builds no mask for an attention without a mask function: these two alone decide what is causal.
register_attention(BIDIRECTIONAL, packed_attention)
register_attention(CAUSAL, functools.partial(packed_attention, causal=True))

# --- What the rows of a prompt attend to, in training and in decoding: the choices, and the one of a model's params.

BOTH_WAYS, PREFIX = "bidirectional", "prefix"
Attention = Literal["bidirectional", "prefix"]
ATTENTIONS: dict[Attention, str] = {
    BOTH_WAYS: "all rows attend to one another, as the checkpoints were trained",
    PREFIX: "the rows of the prompt attend to the prompt alone, those of the canvas to everything",
}


def attention_of(spec: Mapping[str, Any]) -> str:
    """That of a model's params, or of the params in an ``adapter.json``: they name it where it is not the usual one."""
    return spec.get("attention", BOTH_WAYS)
