"""What a reader must know of a test set: which of its sentences occur in the training pairs, and which are odd.

Two sentences are the same if all their characters are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from entropy_valley.plain_text import visible

Row = Mapping[str, Any]


def overlap(test: Sequence[Row], train: Iterable[Row] | None = None) -> dict[str, Any]:
    """Counts of the ``sentences`` of a test set.

    ``repeated``: the source is that of an earlier sentence. ``copied``: the reference is the source. ``invisible``: a
    side has no character that can be seen. With training pairs, which are read once, ``training`` counts test sentences
    with a training ``source``, with a training ``target`` as their reference, and with a whole training ``pair``; and
    the training pairs, of which some are ``copied`` or ``invisible`` too.
    """
    sources = {row["source"] for row in test}
    counted = {"sentences": len(test), "repeated": len(test) - len(sources), **_odd(test)}
    return counted if train is None else {**counted, "training": _training(test, list(train))}


def _odd(rows: Sequence[Row]) -> dict[str, int]:
    return {
        "copied": sum(row["source"] == row["target"] for row in rows),
        "invisible": sum(not (visible(row["source"]) and visible(row["target"])) for row in rows),
    }


def _training(test: Sequence[Row], train: Sequence[Row]) -> dict[str, int]:
    sources, targets = ({row[side] for row in train} for side in ("source", "target"))
    pairs = {(row["source"], row["target"]) for row in train}
    return {
        "pairs": len(train),
        "source": sum(row["source"] in sources for row in test),
        "target": sum(row["target"] in targets for row in test),
        "pair": sum((row["source"], row["target"]) in pairs for row in test),
        **_odd(train),
    }
