"""The entropy valley of a test set: all-mask canvases around the reference's length, and on a dense grid of ratios.

A diagnostic, not a length method: the offsets are counted from the reference. Plain numbers in, the curves of
``valley.json`` out.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.context import SHORTEST


class Place(NamedTuple):
    """An all-mask canvas: the row of the test set, where on a curve it belongs (an offset or a ratio), its slots."""

    row: int
    at: float
    length: int


def around_reference(rows: Iterable[int], targets: Sequence[int], reach: int) -> list[Place]:
    """Canvases of -reach … +reach slots beside the reference's tokens and its EOS; none that is too short to choose."""
    places = (Place(row, offset, targets[row] + 1 + offset) for row in rows for offset in range(-reach, reach + 1))
    return [place for place in places if place.length >= SHORTEST]


def on_grid(rows: Iterable[int], sources: Sequence[int], ratios: Sequence[float]) -> list[Place]:
    """The candidate canvas of every ratio, as EV takes it."""
    return [Place(row, ratio, candidate_length(ratio, sources[row])) for row in rows for ratio in ratios]


def curve(places: Sequence[Place], entropies: Sequence[float]) -> list[dict[str, Any]]:
    """By place on the curve, ascending: ``at``; over its sentences the ``mean`` entropy (nats) and its
    ``standard_error`` (null for one sentence); ``mean_length`` in slots; and how many ``sentences``."""
    groups: dict[float, list[tuple[int, float]]] = {}
    for place, entropy in zip(places, entropies, strict=True):
        groups.setdefault(place.at, []).append((place.length, entropy))
    return [_point(at, *zip(*groups[at], strict=True)) for at in sorted(groups)]


def _point(at: float, lengths: Sequence[int], entropies: Sequence[float]) -> dict[str, Any]:
    count = len(entropies)
    error = statistics.stdev(entropies) / math.sqrt(count) if count > 1 else None
    return {
        "at": at,
        "mean": math.fsum(entropies) / count,
        "standard_error": error,
        "mean_length": sum(lengths) / count,
        "sentences": count,
    }


def complete(places: Sequence[Place], entropies: Sequence[float]) -> list[dict[str, Any]]:
    """:func:`curve` over the sentences that have a canvas at every place of the curve, so that all points have the same
    ones; and ``lowest``, the share of them whose entropy is lowest there (the shorter canvas on a tie)."""
    whole = len({place.at for place in places})
    have = Counter(place.row for place in places)
    kept = [pair for pair in zip(places, entropies, strict=True) if have[pair[0].row] == whole]
    if not kept:
        return []
    best: dict[int, tuple[float, float]] = {}
    for place, entropy in kept:
        best[place.row] = min(best.get(place.row, (math.inf, 0.0)), (entropy, place.at))
    lowest = Counter(at for _, at in best.values())
    points = curve(*zip(*kept, strict=True))
    return [point | {"lowest": lowest[point["at"]] / len(best)} for point in points]
