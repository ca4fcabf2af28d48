"""Sequences of different lengths in one pass: no padding, and attention only inside each sequence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from entropy_valley.backbone.attention import Segments
from entropy_valley.backbone.last_layer import reads_rows


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


def hidden_states(model: Any, packed: Packed, rows: Rows | None = None) -> torch.Tensor:
    """Last hidden states after the final norm, (rows, width), of a model made by :mod:`.loading`.

    With ``rows``, only theirs: for the other rows the last layer computes only keys and values.
    """
    options = {"segments": Segments(packed.lengths, packed.lengths)}
    spared = rows is not None and reads_rows(model)
    if spared:
        reading = None if rows.counts is None else Segments(packed.lengths, rows.counts)
        options |= {"rows": rows.places, "reading": reading}
    states = model.model(
        input_ids=packed.input_ids, position_ids=packed.position_ids, use_cache=False, **options
    ).last_hidden_state[0]
    return states if rows is None or spared else states[rows.places]
