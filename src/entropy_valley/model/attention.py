"""A pass of a model over packed sequences, read from top to bottom: :func:`hidden_states` is the way in.

Sequences of different lengths are laid end to end, without padding, and attend inside themselves. Of a sequence the
first rows, its *prefix*, may attend to one another alone: their keys and values are then the same whatever stands
behind them. The last layer computes only the rows that are read. The stock classes of transformers run the layers; ours
are their attention, their rotary embedding and their last layer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, rotate_half
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer

# --- A pass.

_DUMMY = 256  # tokens of a dummy sequence, at most: the cost of attention grows with the square of its length


@dataclass(frozen=True)
class Packed:
    """Sequences laid end to end.

    ``prefixes``: the rows of the prefix of each; none if it is empty. ``kept``: keys and values of other passes, which
    the rows of a sequence attend to before its own; a pass has either.
    """

    input_ids: torch.Tensor  # (1, rows)
    position_ids: torch.Tensor  # (1, rows), from 0 in each sequence
    lengths: tuple[int, ...]
    prefixes: tuple[int, ...] = ()
    kept: CachedRows | None = None


@dataclass(frozen=True)
class Rows:
    """The rows of a pass that are read: their ``places`` (read rows,), ascending, and their ``counts`` by sequence.

    Without ``counts`` all rows of the last layer attend. In training this is cheaper: sequences of one length have
    different counts, and one attention call serves them all.
    """

    places: torch.Tensor
    counts: tuple[int, ...] | None = None


def pack(
    sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu", prefixes: Sequence[int] = ()
) -> Packed:
    """Lay token-id sequences end to end; neighbours of equal length share one attention call."""
    lengths = tuple(len(sequence) for sequence in sequences)
    flat = list(itertools.chain.from_iterable(sequences))
    positions = list(itertools.chain.from_iterable(range(length) for length in lengths))
    tensors = (torch.tensor([column], device=device) for column in (flat, positions))
    return Packed(*tensors, lengths, tuple(prefixes))


def filled(packed: Packed, tokens: int) -> Packed:
    """The same sequences, and behind them dummy ones up to ``tokens`` tokens, if there is room."""
    size, device = packed.input_ids.shape[1], packed.input_ids.device
    if size >= tokens:
        return packed
    dummies = tuple(min(_DUMMY, tokens - first) for first in range(size, tokens, _DUMMY))
    places = torch.arange(tokens - size, device=device)[None] % _DUMMY
    positions = torch.cat([packed.position_ids, places], 1)
    kept = packed.kept and packed.kept.filled(tokens - size)
    return Packed(pad(packed.input_ids, (0, tokens - size)), positions, packed.lengths + dummies, packed.prefixes, kept)


def hidden_states(model: Any, packed: Packed, rows: Rows | None = None, fill: int | None = None) -> torch.Tensor:
    """Last hidden states after the final norm, (rows, width), of a model made by :mod:`.load`.

    With ``rows``, only theirs: for the other rows the last layer computes only keys and values. Where ``rows`` have
    counts, those of a prefix are not read. With ``fill``, the pass has that many tokens, some of dummy sequences, all
    layers run on all of them, and no sequence's attention depends on the others': a sequence's states are then
    independent of the others on a GPU too. Sequences of more tokens than ``fill`` are not filled up.
    """
    if fill is not None:
        states = _hidden_states(model, filled(packed, fill), apart=True)
        return states[: packed.input_ids.shape[1]] if rows is None else states[rows.places]
    return _hidden_states(model, packed, rows)


def _hidden_states(model: Any, packed: Packed, rows: Rows | None = None, apart: bool = False) -> torch.Tensor:
    options = {"segments": _segments(packed, apart)}
    spared = rows is not None and reads_rows(model)
    if spared:
        reading = None if rows.counts is None else Segments(_keys(packed), rows.counts, source=packed.kept)
        options |= {"rows": rows.places, "reading": reading}
    states = model.model(
        input_ids=packed.input_ids, position_ids=packed.position_ids, use_cache=False, **options
    ).last_hidden_state[0]
    return states if rows is None or spared else states[rows.places]


def _keys(packed: Packed) -> tuple[int, ...]:
    """How many keys the rows of each sequence attend to, those of a prefix apart."""
    kept = packed.kept.cached if packed.kept else ()
    return tuple(map(sum, itertools.zip_longest(packed.lengths, kept, fillvalue=0)))


def _segments(packed: Packed, apart: bool) -> Segments:
    """What attends to what: in a sequence with a prefix, that to itself, and the other rows to all."""
    if not any(packed.prefixes):
        return Segments(_keys(packed), packed.lengths, apart, packed.kept)
    parts = list(itertools.zip_longest(packed.prefixes, packed.lengths, fillvalue=0))
    keys = tuple(count for part in parts for count in part)
    queries = tuple(count for first, length in parts for count in (first, length - first))
    counts, starts = np.array(keys), np.repeat(np.cumsum([0, *packed.lengths])[:-1], 2)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    (places,) = upload([np.repeat(starts, counts) + within], packed.input_ids.device)
    return Segments(keys, queries, apart, _Repeated(places))


@dataclass(frozen=True)
class _Repeated:
    """Keys and values of the rows at ``places`` of the pass, some of them more than once."""

    places: torch.Tensor

    def gather(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return key.index_select(0, self.places), value.index_select(0, self.places)


# --- Attention inside the segments of a pass, registered in transformers under two names.

BIDIRECTIONAL, CAUSAL = "packed_bidirectional", "packed_causal"


@dataclass(frozen=True)
class Segments:
    """The parts of a pass: the next ``queries[k]`` rows that attend do so to the next ``keys[k]`` keys.

    ``apart``: the attention of a segment is computed in the same way whatever the others are. ``source``: where its
    keys and values are from, if they are not the rows of the pass in turn.
    """

    keys: tuple[int, ...]
    queries: tuple[int, ...]
    apart: bool = False
    source: CachedRows | _Repeated | None = None

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
    query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    if segments.source is not None:
        key, value = segments.source.gather(module.layer_idx, key, value)
    return attend(query, key, value, segments, scaling, causal).unsqueeze(0)


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


_KERNEL_OPTIONS = inspect.signature(varlen_attn).parameters


def _by_kernel(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, segments: Segments, scaling: float, causal: bool
) -> torch.Tensor:
    """One kernel for all segments; tensors are (rows, heads, width).

    The longest segment counts as at least two queries, which is allowed: for one query and grouped heads, the kernel
    puts the heads of a group in the place of queries, and fails where a segment has none.
    """
    # Torch 2.11 has neither of these: it groups heads and splits no keys without being told.
    options = {"enable_gqa": query.shape[1] != key.shape[1], "num_splits": 1 if segments.apart else None}
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
        **{name: value for name, value in options.items() if name in _KERNEL_OPTIONS},
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
    query_rows = [count * queries for count, queries, _ in segments.runs]
    key_rows = [count * keys for count, _, keys in segments.runs]
    # Not slices: the gradient of a slice allocates a full buffer of zeros for each run.
    parts = zip(segments.runs, query.split(query_rows), key.split(key_rows), value.split(key_rows), strict=True)
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


# --- Keys and values that are kept between passes, as those of a prompt.


class Pool:
    """Keys and values of rows, layer by layer, in places that are used again.

    A layer's are two tensors (places, heads, head width), made at the first pass and larger when more are needed.
    """

    def __init__(self) -> None:
        self._layers: dict[int, list[torch.Tensor]] = {}
        self._free = np.empty(0, np.int64)
        self.size = 0

    @property
    def used(self) -> int:
        """The places taken."""
        return self.size - len(self._free)

    def take(self, count: int) -> np.ndarray:
        """So many free places."""
        if count > len(self._free):
            grown = self.used + count + self.size // 4  # a layer that grows is copied: not at every pass
            self._free = np.concatenate([np.arange(self.size, grown), self._free])
            self.size = grown
        taken, self._free = self._free[-count:] if count else self._free[:0], self._free[: len(self._free) - count]
        return taken

    def keep(self, places: Sequence[np.ndarray]) -> None:
        """Let all other places be taken again."""
        self._free = np.setdiff1d(np.arange(self.size), np.concatenate([self._free[:0], *places]))

    def shrink(self) -> None:
        """Give back the memory behind the last place taken."""
        taken = np.setdiff1d(np.arange(self.size), self._free)
        self.size = int(taken[-1]) + 1 if len(taken) else 0
        self._free = self._free[self._free < self.size]
        for tensors in self._layers.values():
            tensors[:] = [tensor[: self.size].clone() for tensor in tensors]

    def layer(self, number: int, like: torch.Tensor) -> list[torch.Tensor]:
        """The keys and the values of a layer; ``like`` is a tensor of rows, (any, heads, head width), of the model."""
        # Not like[:0]: that would keep the whole of ``like`` in memory.
        tensors = self._layers.setdefault(number, [like.new_empty(0, *like.shape[1:]) for _ in range(2)])
        missing = self.size - len(tensors[0])
        if missing > 0:
            tensors[:] = [torch.cat([tensor, tensor.new_empty(missing, *like.shape[1:])]) for tensor in tensors]
        return tensors


@dataclass(frozen=True)
class CachedRows:
    """What a pass keeps in a pool, and what its sequences attend to there.

    The rows ``saved`` of the pass go to the places ``into``. A sequence attends to the next ``cached[k]`` of
    ``places``, and to its own rows behind them: in the keys of all sequences together, the former stand at ``of_keys``
    and the latter at ``own_keys``. Tensors of int64, on the model's device.
    """

    pool: Pool
    cached: tuple[int, ...]
    saved: torch.Tensor
    into: torch.Tensor
    places: torch.Tensor
    of_keys: torch.Tensor
    own_keys: torch.Tensor

    def gather(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The keys and values of all sequences, (keys, heads, width), from those of the pass, (rows, heads, width)."""
        gathered = []
        for kept, own in zip(self.pool.layer(layer, key), (key, value), strict=True):
            kept.index_copy_(0, self.into, own.index_select(0, self.saved))
            joined = own.new_empty(len(self.of_keys) + len(self.own_keys), *own.shape[1:])
            joined.index_copy_(0, self.own_keys, own)
            gathered.append(joined.index_copy_(0, self.of_keys, kept.index_select(0, self.places)))
        return tuple(gathered)

    def filled(self, rows: int) -> CachedRows:
        """The same behind which so many rows follow that attend to nothing kept."""
        first = len(self.of_keys) + len(self.own_keys)
        more = torch.arange(first, first + rows, device=self.own_keys.device)
        return dataclasses.replace(self, own_keys=torch.cat([self.own_keys, more]))


# --- The last layer, computed only on the rows that are read: the other rows give it keys and values alone.

FULL_KERNEL = 4  # rows: with fewer, a CPU's BLAS takes another path, which rounds differently


class _Narrowing:
    def forward(
        self,
        hidden_states: torch.Tensor,
        *rest: Any,
        rows: torch.Tensor | None = None,
        reading: Segments | None = None,
        **options: Any,
    ) -> torch.Tensor:
        """The stock layer's output, (1, rows, width); with ``rows``, only theirs.

        With ``reading``, only its queries, which are ``rows``, attend. Without it all rows attend, and the layer then
        continues with ``rows``.
        """
        if rows is None:
            return super().forward(hidden_states, *rest, **options)
        count = len(rows)
        rows = torch.cat([rows, rows[-1:].expand(max(0, FULL_KERNEL - count))])
        normed, rotation = self.input_layernorm(hidden_states), options["position_embeddings"]
        if reading is None:
            attended = self._attend(normed, rotation, slice(None), options["segments"])[:, rows]
        else:
            attended = pad(self._attend(normed, rotation, rows, reading), (0, 0, 0, len(rows) - count))
        states = hidden_states[:, rows] + self.self_attn.o_proj(attended)
        return (states + self.mlp(self.post_attention_layernorm(states)))[:, :count]

    def _attend(
        self,
        states: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
        rows: torch.Tensor | slice,
        reading: Segments,
    ) -> torch.Tensor:
        attention = self.self_attn
        query, key, value = (
            projection(inputs).unflatten(-1, (-1, attention.head_dim)).transpose(1, 2)
            for projection, inputs in (
                (attention.q_proj, states[:, rows]),
                (attention.k_proj, states),
                (attention.v_proj, states),
            )
        )
        cos, sin = (angles.unsqueeze(1) for angles in rotation)
        query = (query * cos[:, :, rows] + rotate_half(query) * sin[:, :, rows])[:, :, : sum(reading.queries)]
        key = key * cos + rotate_half(key) * sin
        attend = ALL_ATTENTION_FUNCTIONS[BIDIRECTIONAL]
        attended, _ = attend(attention, query, key, value, None, scaling=attention.scaling, segments=reading)
        return attended.flatten(2)


class _NarrowingLlama(_Narrowing, LlamaDecoderLayer):
    pass


class _NarrowingQwen2(_Narrowing, Qwen2DecoderLayer):
    pass


_NARROWING = {LlamaDecoderLayer: _NarrowingLlama, Qwen2DecoderLayer: _NarrowingQwen2}


def narrow(model: Any) -> None:
    """Let the last layer of a bidirectional stock ``…ForCausalLM`` skip the rows that are not read.

    A layer of a class that is not listed here does not change.
    """
    last = model.model.layers[-1]
    if model.config._attn_implementation == BIDIRECTIONAL:
        # Only the class changes: a new layer would draw random weights a second time.
        last.__class__ = _NARROWING.get(type(last), type(last))


def reads_rows(model: Any) -> bool:
    """Whether the last layer takes ``rows``."""
    return isinstance(model.model.layers[-1], _Narrowing)


# --- Rotary embedding from tables.


def exact(rotary: type[torch.nn.Module], float32: bool) -> type[torch.nn.Module]:
    """A stock rotary embedding class that looks cos and sin up in tables of all positions.

    The stock class computes angles by a matrix product in every pass. In training this would run in TF32 on a GPU,
    where inverse frequencies keep ten bits: errors up to 0.16 rad at position 1,000, and other angles than in decoding.
    The tables are made once for the context, by plain multiplication in float32, and have the bits that the stock class
    has in full precision. With ``float32`` they stay float32, so q and k are rotated in float32 and not in the dtype of
    the states. Our attentions cast them back.
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


# --- Columns of numbers to a device and back.
#
# A GPU works behind its host. A host that copies from ordinary memory, or asks for a value, waits until the GPU has
# done everything before. So numbers go there from pinned memory in one copy, and come back all at once.


def upload(columns: Sequence[np.ndarray], device: torch.device) -> tuple[torch.Tensor, ...]:
    """The columns, all of one dtype, as tensors on ``device``; the host does not wait for the copy."""
    joined = torch.from_numpy(np.concatenate(columns))
    if device.type == "cuda":
        joined = joined.pin_memory().to(device, non_blocking=True)
    return joined.split([len(column) for column in columns])


def download(columns: Sequence[torch.Tensor]) -> list[np.ndarray]:
    """The columns, numbers that float64 holds exactly, as float64; the host waits once."""
    joined = torch.cat([column.double() for column in columns]).cpu().numpy()
    return np.split(joined, np.cumsum([len(column) for column in columns])[:-1])
