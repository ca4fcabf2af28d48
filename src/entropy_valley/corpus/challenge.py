"""The challenge subset of a test set: sentences with dates, lists, names or numbers, by one of two readings.

``first``, that of the authors' code: the first sentences of the file that have a category by their rules, which are for
the English side of a pair. ``stratified``, ours: drawn by the keyed hash, with as many of each category as possible, by
our rules for the source side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal

from entropy_valley.corpus import published_categories
from entropy_valley.corpus.categories import CATEGORIES, LANGUAGES, categories
from entropy_valley.corpus.sampling import Pair, rank, shortage
from entropy_valley.errors import InputError

Reading = Literal["first", "stratified"]
Numbered = tuple[int, Pair]


def refused(direction: str, reading: Reading) -> str | None:
    """Why a reading finds no categories in a direction; None if it does."""
    sides = direction.split("-")
    if reading == "first":
        return None if "en" in sides else f"the rules are for English, and {direction} has no such side"
    return None if sides[0] in LANGUAGES else f"no categories for sources in {sides[0]}"


def categories_of(pair: Pair, direction: str, reading: Reading) -> tuple[str, ...]:
    """The categories of a (source, target) pair; InputError where :func:`refused` has a reason."""
    if problem := refused(direction, reading):
        remedy = "Set `corpus.challenge: stratified`" if reading == "first" else "Choose another direction"
        raise InputError(f"challenge subset: {direction}", problem, f"{remedy}, or name another test set.")
    if reading == "first":
        return published_categories.categories(pair[direction.split("-").index("en")])
    return categories(pair[0], direction.split("-")[0])


def challenge(numbered: Iterable[Numbered], size: int, seed: int, direction: str, reading: Reading) -> list[Numbered]:
    """``size`` numbered pairs that have a category, in the order of the file.

    Raises InputError if there are too few.
    """
    found = {item: of for item in numbered if (of := categories_of(item[1], direction, reading))}
    drawn = list(islice(found, size)) if reading == "first" else _stratified(found, size, seed)
    if len(drawn) < size:
        raise shortage(len(drawn), size, "challenge subset")
    return sorted(drawn)


def _stratified(found: dict[Numbered, tuple[str, ...]], size: int, seed: int) -> Sequence[Numbered]:
    """For each category, from the rarest to the most frequent, pairs are drawn by rank until ⌊``size`` / 4⌋ drawn pairs
    have it or no more exist. The rest is drawn by rank among all pairs with a category.
    """
    ranked = sorted(found, key=lambda item: (rank(item[1], seed), item[0]))
    strata = [[item for item in ranked if category in found[item]] for category in CATEGORIES]
    drawn: dict[Numbered, None] = {}
    for having in sorted(strata, key=len):  # of equally frequent ones the paper's first
        missing = size // len(CATEGORIES) - sum(item in drawn for item in having)
        drawn |= dict.fromkeys([item for item in having if item not in drawn][: max(0, missing)])
    return list(drawn | dict.fromkeys([item for item in ranked if item not in drawn][: size - len(drawn)]))
