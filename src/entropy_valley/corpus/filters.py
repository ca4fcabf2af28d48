"""Length filters by language: in words (split at white space) or in characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from entropy_valley.corpus.sampling import Pair

Filters = Mapping[str, Mapping[str, Sequence[int]]]
Passing = Callable[[str, Mapping[str, Sequence[int]]], bool]

UNITS = {"words": lambda text: len(text.split()), "characters": len}


def within(text: str, limits: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text is within all ``limits`` (low, high), both included; an empty text is not."""
    return bool(text) and all(low <= UNITS[unit](text) <= high for unit, (low, high) in limits.items())


def accepts(text: str, limits: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text is not blank and :func:`within` the limits."""
    return bool(text.strip()) and within(text, limits)


def filtered(pairs: Iterable[Pair], direction: str, filters: Filters, counts: Counter[str]) -> Iterator[Pair]:
    """The pairs of which both sides pass; counts into ``counts["read"]`` and ``counts["filtered"]``."""
    for pair, passes in judged(pairs, direction, filters, counts, accepts):
        if passes:
            yield pair


def judged(
    pairs: Iterable[Pair], direction: str, filters: Filters, counts: Counter[str], passing: Passing
) -> Iterator[tuple[Pair, bool]]:
    """Every pair, and whether ``passing`` says so of both sides and their limits; counted as :func:`filtered` does."""
    source_limits, target_limits = (filters.get(language, {}) for language in direction.split("-"))
    for source, target in pairs:
        passes = passing(source, source_limits) and passing(target, target_limits)
        counts["read"] += 1
        counts["filtered"] += not passes
        yield (source, target), passes
