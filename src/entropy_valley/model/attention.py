"""Packed sequences, and the attention inside them.

Sequences of different lengths are laid end to end, without padding, and attend inside themselves. Of a sequence the
first rows, its *prefix*, may attend to one another alone: their keys and values are then the same whatever stands
behind them. :meth:`.Decoder.hidden_states` runs a pass over them.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

# --- A pass.

_DUMMY = 256  # tokens of a dummy sequence, at most: the cost of attention grows with the square of its length


@dataclass(frozen=True)
class Packed:
    """Sequences laid end to end.

    ``prefixes``: the rows of the prefix of each; none if it is empty. ``kept``: keys and values of other passes, which
    the rows of a sequence attend to before its own; a pass has either.
    """

    input_ids: Tensor  # (1, rows)
    position_ids: Tensor  # (1, rows), from 0 in each sequence
    lengths: tuple[int, ...]
    prefixes: tuple[int, ...] = ()
    kept: CachedRows | None = None


@dataclass(frozen=True)
class Rows:
    """The rows of a pass that are read: their ``places`` (read rows,), ascending, and their ``counts`` by sequence.

    Without ``counts`` all rows of the last layer attend. In training this is cheaper: sequences of one length have
    different counts, and one attention call serves them all.
    """

    places: Tensor
    counts: tuple[int, ...] | None = None


def pack(
    sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu", prefixes: Sequence[int] = ()
) -> Packed:
    """Lay token-id sequences end to end; neighbours of equal length share one attention call."""
    lengths = tuple(len(sequence) for sequence in sequences)
    flat = list(itertools.chain.from_iterable(sequences))
    positions = list(itertools.chain.from_iterable(range(length) for length in lengths))
    ids, places = (torch.tensor([column], device=device) for column in (flat, positions))
    return Packed(ids, places, lengths, tuple(prefixes))


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


def segments_of(packed: Packed, apart: bool, counts: Sequence[int] | None = None) -> Segments:
    """What attends to what: in a sequence with a prefix, that to itself, and the other rows to all. With ``counts``
    only so many rows of each sequence attend, and there are no prefixes."""
    keys = packed.lengths
    if packed.kept:
        keys = tuple(length + cached for length, cached in itertools.zip_longest(keys, packed.kept.cached, fillvalue=0))
    if counts is not None or not any(packed.prefixes):
        return Segments(keys, packed.lengths if counts is None else tuple(counts), apart, packed.kept)
    parts = list(itertools.zip_longest(packed.prefixes, packed.lengths, fillvalue=0))
    keys = tuple(count for part in parts for count in part)
    queries = tuple(count for first, length in parts for count in (first, length - first))
    sizes, starts = np.array(keys), np.repeat(np.cumsum([0, *packed.lengths])[:-1], 2)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    (places,) = upload([np.repeat(starts, sizes) + within], packed.input_ids.device)
    return Segments(keys, queries, apart, _Repeated(places))


@dataclass(frozen=True)
class _Repeated:
    """Keys and values of the rows at ``places`` of the pass, some of them more than once."""

    places: Tensor

    def gather(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return key.index_select(0, self.places), value.index_select(0, self.places)


# --- Attention inside the segments of a pass.


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
    def _bounds(self) -> dict[tuple[tuple[int, ...], torch.device], Tensor]:
        return {}

    def bounds(self, lengths: tuple[int, ...], device: torch.device) -> Tensor:
        """The start of each sequence, and the end: (sequences + 1,), int32; computed once for all layers."""
        if (lengths, device) not in self._bounds:
            starts = np.cumsum((0, *lengths), dtype=np.int32)
            (self._bounds[lengths, device],) = upload([starts], device)
        return self._bounds[lengths, device]


def attend(segments: Segments, layer: int, query: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Tensor:
    """Attention inside each segment, of and to (rows, heads, width); ``layer`` is its number.

    Each row attends to its whole segment; if ``causal``, to itself and the rows before it.
    """
    if segments.source is not None:
        key, value = segments.source.gather(layer, key, value)
    return (_by_kernel if has_kernel(query) else _by_run)(query, key, value, segments, causal)


def has_kernel(query: Tensor) -> bool:
    """Whether torch's variable-length attention runs here: half precision on an Ampere or later GPU."""
    half = query.dtype in (torch.bfloat16, torch.float16)
    return query.is_cuda and half and torch.cuda.get_device_capability(query.device) >= (8, 0)


@functools.cache
def _kernel() -> tuple[Callable[..., Any], Collection[str]]:
    """Torch's variable-length attention, and the names of its arguments. Imported where it runs: it doubles the time
    of torch's own import."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn, inspect.signature(varlen_attn).parameters


def _by_kernel(query: Tensor, key: Tensor, value: Tensor, segments: Segments, causal: bool) -> Tensor:
    """One kernel for all segments; tensors are (rows, heads, width).

    The longest segment counts as at least two queries, which is allowed: for one query and grouped heads, the kernel
    puts the heads of a group in the place of queries, and fails where a segment has none.
    """
    # Torch 2.11 has neither of these: it groups heads and splits no keys without being told.
    kernel, arguments = _kernel()
    options = {"enable_gqa": query.shape[1] != key.shape[1], "num_splits": 1 if segments.apart else None}
    return kernel(
        query,
        key,
        value,
        segments.bounds(segments.queries, query.device),
        segments.bounds(segments.keys, query.device),
        max(2, *segments.queries),
        max(segments.keys),
        window_size=(-1, 0) if causal else (-1, -1),
        **{name: value for name, value in options.items() if name in arguments},
    )


def _by_run(query: Tensor, key: Tensor, value: Tensor, segments: Segments, causal: bool) -> Tensor:
    """One batch for each run of equal segments. On a CPU this takes a third of the time of a padded batch, and a
    seventh of the time of a block-diagonal mask."""
    if torch.is_autocast_enabled("cpu"):  # the gradient in bfloat16 takes twenty times as long
        query, key, value = query.float(), key.float(), value.float()
    query_rows = [count * queries for count, queries, _ in segments.runs]
    key_rows = [count * keys for count, _, keys in segments.runs]
    # Not slices: the gradient of a slice allocates a full buffer of zeros for each run.
    parts = zip(segments.runs, query.split(query_rows), key.split(key_rows), value.split(key_rows), strict=True)
    grouped = query.shape[1] != key.shape[1]
    pieces = []
    with torch.autocast("cpu", enabled=False):
        for (count, queries, _), *part in parts:
            if not queries:
                continue
            q, k, v = (tensor.view(count, -1, *tensor.shape[1:]).transpose(1, 2) for tensor in part)
            attended = scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)
            pieces.append(attended.transpose(1, 2).flatten(0, 1))
    return torch.cat(pieces)


# --- Keys and values that are kept between passes, as those of a prompt.


class Pool:
    """Keys and values of rows, layer by layer, in places that are used again.

    A layer's are two tensors (places, heads, head width), made at the first pass and larger when more are needed.
    """

    def __init__(self) -> None:
        self._layers: dict[int, list[Tensor]] = {}
        self._free = np.empty(0, np.int64)
        self.size = self.used = 0  # all places, and those taken

    def take(self, count: int) -> np.ndarray:
        """So many free places."""
        if count > len(self._free):
            grown = self.used + count + self.size // 4  # a layer that grows is copied: not at every pass
            self._free = np.concatenate([np.arange(self.size, grown), self._free])
            self.size = grown
        rest = len(self._free) - count
        taken, self._free = self._free[rest:], self._free[:rest]
        self.used += count
        return taken

    def keep(self, places: Iterable[np.ndarray]) -> None:
        """Let all other places be taken again; without any to keep, give the memory back."""
        kept = np.concatenate([self._free[:0], *places])
        if not len(kept):
            self._layers.clear()
            self.size = 0
        self.used = len(kept)
        self._free = np.setdiff1d(np.arange(self.size), kept)

    def layer(self, number: int, like: Tensor) -> list[Tensor]:
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
    saved: Tensor
    into: Tensor
    places: Tensor
    of_keys: Tensor
    own_keys: Tensor

    def gather(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
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


# --- Columns of numbers to a device and back.
#
# A GPU works behind its host. A host that copies from ordinary memory, or asks for a value, waits until the GPU has
# done everything before. So numbers go there from pinned memory in one copy, and come back all at once.


def upload(columns: Sequence[np.ndarray], device: torch.device) -> tuple[Tensor, ...]:
    """The columns, all of one dtype, as tensors on ``device``; the host does not wait for the copy."""
    joined = torch.from_numpy(np.concatenate(columns))
    if device.type == "cuda":
        joined = joined.pin_memory().to(device, non_blocking=True)
    return joined.split([len(column) for column in columns])


def download(columns: Sequence[Tensor]) -> list[np.ndarray]:
    """The columns, numbers that float64 holds exactly, as float64; the host waits once."""
    joined = torch.cat([column.double() for column in columns]).cpu().numpy()
    return np.split(joined, np.cumsum([len(column) for column in columns])[:-1])
