"""Length filters by language: in words (split at white space) or in characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from entropy_valley.corpus.sampling import Pair

Filters = Mapping[str, Mapping[str, Sequence[int]]]

UNITS = {"words": lambda text: len(text.split()), "characters": len}


def accepts(text: str, limits: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text is within all ``limits`` (low, high), both included; a blank text is not."""
    return bool(text.strip()) and all(low <= UNITS[unit](text) <= high for unit, (low, high) in limits.items())


def filtered(pairs: Iterable[Pair], direction: str, filters: Filters, counts: Counter[str]) -> Iterator[Pair]:
    """The pairs of which both sides pass; counts into ``counts["read"]`` and ``counts["filtered"]``."""
    source_limits, target_limits = (filters.get(language, {}) for language in direction.split("-"))
    for source, target in pairs:
        counts["read"] += 1
        if accepts(source, source_limits) and accepts(target, target_limits):
            yield source, target
        else:
            counts["filtered"] += 1
