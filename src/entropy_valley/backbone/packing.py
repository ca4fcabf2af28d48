"""Sequences of different lengths in one pass: no padding, and attention only inside each sequence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad

from entropy_valley.backbone.attention import Segments
from entropy_valley.backbone.last_layer import reads_rows

_DUMMY = 256  # tokens of a dummy sequence, at most: the cost of attention grows with the square of its length


@dataclass(frozen=True)
class Packed:
    """Sequences laid end to end."""

    input_ids: torch.Tensor  # (1, rows)
    position_ids: torch.Tensor  # (1, rows), from 0 in each sequence
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """The rows of a pass that are read: their ``places`` (read rows,), ascending, and their ``counts`` by sequence.

    Without ``counts`` all rows of the last layer attend. In training this is cheaper: sequences of one length have
    different counts, and one attention call serves them all.
    """

    places: torch.Tensor
    counts: tuple[int, ...] | None = None


def pack(sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Packed:
    """Lay token-id sequences end to end; neighbours of equal length share one attention call."""
    lengths = tuple(len(sequence) for sequence in sequences)
    flat = list(itertools.chain.from_iterable(sequences))
    positions = list(itertools.chain.from_iterable(range(length) for length in lengths))
    return Packed(torch.tensor([flat], device=device), torch.tensor([positions], device=device), lengths)


def filled(packed: Packed, tokens: int) -> Packed:
    """The same sequences, and behind them dummy ones up to ``tokens`` tokens, if there is room."""
    size, device = packed.input_ids.shape[1], packed.input_ids.device
    if size >= tokens:
        return packed
    dummies = tuple(min(_DUMMY, tokens - first) for first in range(size, tokens, _DUMMY))
    places = torch.arange(tokens - size, device=device)[None] % _DUMMY
    positions = torch.cat([packed.position_ids, places], 1)
    return Packed(pad(packed.input_ids, (0, tokens - size)), positions, packed.lengths + dummies)


def hidden_states(model: Any, packed: Packed, rows: Rows | None = None, fill: int | None = None) -> torch.Tensor:
    """Last hidden states after the final norm, (rows, width), of a model made by :mod:`.loading`.

    With ``rows``, only theirs: for the other rows the last layer computes only keys and values. With ``fill``, the pass
    has that many tokens, some of dummy sequences, all layers run on all of them, and no sequence's attention depends on
    the others': a sequence's states are then independent of the others on a GPU too. Sequences of more tokens than
    ``fill`` are not filled up.
    """
    if fill is not None:
        states = _hidden_states(model, filled(packed, fill), apart=True)
        return states[: packed.input_ids.shape[1]] if rows is None else states[rows.places]
    return _hidden_states(model, packed, rows)


def _hidden_states(model: Any, packed: Packed, rows: Rows | None = None, apart: bool = False) -> torch.Tensor:
    options = {"segments": Segments(packed.lengths, packed.lengths, apart)}
    spared = rows is not None and reads_rows(model)
    if spared:
        reading = None if rows.counts is None else Segments(packed.lengths, rows.counts)
        options |= {"rows": rows.places, "reading": reading}
    states = model.model(
        input_ids=packed.input_ids, position_ids=packed.position_ids, use_cache=False, **options
    ).last_hidden_state[0]
    return states if rows is None or spared else states[rows.places]
