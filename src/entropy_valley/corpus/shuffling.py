"""Training pairs as the scripts of the paper's authors draw them: a shuffled list, of which the first pairs are taken.

There are two scripts. ``shuffle``, for Chinese: all pairs that pass the filters are shuffled. ``shuffle_rows``, for
German: the rows of the data set are shuffled; of these, the first that pass, 5,000 more than there are training pairs,
are shuffled again. In both, train is the beginning of the list, dev is what follows, and a pair that the data has twice
may come twice.

Only numbers of rows are shuffled: the data is read twice, and its texts are never held at once.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, MutableSequence
from typing import Literal

from entropy_valley.corpus.sampling import Pair, shares
from entropy_valley.late import numpy as np

Shuffling = Literal["shuffle", "shuffle_rows"]
SPARE = 5000  # pairs that `shuffle_rows` shuffles beside the training pairs; dev pairs are among these
_CHUNK = 2**20  # rows that are looked up at once
_ROW = "I"  # 32 bits: the data sets have tens of millions of rows


def split(
    read: Callable[[], Iterable[tuple[Pair, bool]]], train: int, dev: int, seed: int, how: Shuffling
) -> tuple[list[Pair], list[Pair]]:
    """``train`` and ``dev`` pairs of the rows that ``read`` gives on each call: a pair, and whether it passes.

    They are the most, see :func:`.sampling.shares`. The draw depends on which rows pass and on their order, and on no
    text.
    """
    passing = bytearray(passes for _, passes in read())
    order = _shuffled_rows(passing, train + SPARE, seed) if how == "shuffle_rows" else _rows(passing)
    random.Random(seed).shuffle(order)
    wanted = order[: train + dev]
    del order, passing  # a data set has tens of millions of rows
    train, _ = shares(len(wanted), train, dev)
    place = {row: at for at, row in enumerate(wanted)}
    drawn = {place[row]: pair for row, (pair, _) in enumerate(read()) if row in place}
    pairs = [drawn[at] for at in range(len(wanted))]
    return pairs[:train], pairs[train:]


def _rows(passing: bytearray) -> MutableSequence[int]:
    return array(_ROW, (row for row, passes in enumerate(passing) if passes))


def _shuffled_rows(passing: bytearray, size: int, seed: int) -> MutableSequence[int]:
    """The first ``size`` passing rows of the data set as `datasets.Dataset.shuffle` orders it."""
    order, passes = np.arange(len(passing), dtype=np.uint32), np.frombuffer(passing, dtype=bool)
    np.random.default_rng(seed).shuffle(order)  # as `permutation` does with numbers of 64 bits
    kept = array(_ROW)
    for begin in range(0, len(order), _CHUNK):
        rows = order[begin : begin + _CHUNK]
        kept.extend(rows[passes[rows]][: size - len(kept)].tolist())
        if len(kept) == size:
            break
    return kept
