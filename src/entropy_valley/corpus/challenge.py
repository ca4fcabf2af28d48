"""The challenge subset of a test set: sentences with dates, lists, names or numbers, stratified by category."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from entropy_valley.corpus.categories import CATEGORIES, categories
from entropy_valley.corpus.sampling import Pair, rank, shortage

Numbered = tuple[int, Pair]


def challenge(numbered: Iterable[Numbered], size: int, seed: int, language: str) -> list[Numbered]:
    """``size`` numbered pairs whose source, in ``language``, has a category; in the order of the file.

    For each category, from the rarest to the most frequent, pairs are drawn by rank until ⌊``size`` / 4⌋ drawn pairs
    have it or no more exist. The rest is drawn by rank among all pairs with a category. Raises InputError if there are
    too few.
    """
    ranked = sorted(numbered, key=lambda item: (rank(item[1], seed), item[0]))
    labels = {item: found for item in ranked if (found := categories(item[1][0], language))}
    drawn: dict[Numbered, None] = {}
    for having in sorted(_strata(labels), key=len):
        missing = size // len(CATEGORIES) - sum(item in drawn for item in having)
        drawn |= dict.fromkeys([item for item in having if item not in drawn][: max(0, missing)])
    drawn |= dict.fromkeys([item for item in labels if item not in drawn][: size - len(drawn)])
    if len(drawn) < size:
        raise shortage(len(drawn), size, "challenge subset")
    return sorted(drawn)


def _strata(labels: dict[Numbered, tuple[str, ...]]) -> list[Sequence[Numbered]]:
    """The pairs of each category, by rank; categories in the paper's order, which breaks ties."""
    return [[item for item, found in labels.items() if category in found] for category in CATEGORIES]
