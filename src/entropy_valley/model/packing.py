"""Sequences of different lengths in one pass: no padding, attention only inside each sequence.

The rows that nobody reads cost less: the last layer computes only the rows that are read, and keys and values of a
prompt can outlive their pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import pad
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, rotate_half
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer

from entropy_valley.model.attention import BIDIRECTIONAL, Segments
from entropy_valley.model.transfer import upload

# --- The last layer computed only on the rows that are read: the other rows give it keys and values alone.
#
# Transformers runs the stock layers as usual. The last one is a subclass that takes the rows to compute.


if TYPE_CHECKING:
    from entropy_valley.decoding.prompts import Kept

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


# --- Sequences of different lengths in one pass: no padding, and attention only inside each sequence.
#
# Of a sequence the first rows, its *prefix*, may attend to one another alone: their keys and values are then the same
# whatever stands behind them. The other rows attend to all.

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
    kept: Kept | None = None


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
    """Last hidden states after the final norm, (rows, width), of a model made by :mod:`.loading`.

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
    known = packed.kept.known if packed.kept else ()
    return tuple(map(sum, itertools.zip_longest(packed.lengths, known, fillvalue=0)))


def _segments(packed: Packed, apart: bool) -> Segments:
    """What attends to what: in a sequence with a prefix, that to itself, and the other rows to all."""
    if not any(packed.prefixes):
        return Segments(_keys(packed), packed.lengths, apart, packed.kept)
    parts = [(first, length) for first, length in itertools.zip_longest(packed.prefixes, packed.lengths, fillvalue=0)]
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
