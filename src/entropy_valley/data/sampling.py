"""Which pairs are taken: length filters by language, and draws by a keyed hash or as in the authors' scripts."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import Literal

from entropy_valley.errors import InputError, note
from entropy_valley.texts import hidden, visible

Pair = tuple[str, str]

# --- Filters by language: of the length in words (split at white space) or in characters, and of hidden characters.

Filters = Mapping[str, Mapping[str, Sequence[int]]]

REASONS = ("blank", "short", "long")
PATIENCE = 20_000  # filters that let one of a thousand pairs pass practically never drop as many in a row
UNITS = {"words": lambda text: len(text.split()), "characters": len, "hidden": hidden}


def within(text: str, limits: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text is within all ``limits`` (low, high), both included; an empty text is not."""
    return bool(text) and all(low <= UNITS[unit](text) <= high for unit, (low, high) in limits.items())


def accepts(text: str, limits: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text can be seen and is :func:`within` the limits."""
    return visible(text) and within(text, limits)


def filtered(
    pairs: Iterable[Pair], direction: str, filters: Filters, counts: Tally, *, endless: bool = False
) -> Iterator[Pair]:
    """The pairs of which both sides pass; they are counted.

    Raises InputError for :data:`PATIENCE` ``endless`` pairs in a row that do not pass: the search would never end.
    """
    dropped = 0
    for pair, passes in judged(pairs, direction, filters, counts, accepts):
        dropped = 0 if passes else dropped + 1
        if passes:
            yield pair
        elif endless and dropped == PATIENCE:
            reasons = ", ".join(f"{language} {why}: {n:,}" for (language, why), n in sorted(counts.dropped.items()))
            problem = f"{PATIENCE:,} pairs in a row were dropped, and this source never ends ({reasons})"
            raise InputError("corpus.filters", problem, "Widen the filters: perhaps no sentence passes them.")


def judged(
    pairs: Iterable[Pair], direction: str, filters: Filters, counts: Tally, passing: Callable[..., bool]
) -> Iterator[tuple[Pair, bool]]:
    """Every pair, and whether ``passing`` says so of both sides and their limits; counted as :func:`filtered` does."""
    limits = {language: filters.get(language, {}) for language in direction.split("-")}
    for pair in pairs:
        sides = zip(limits, pair, strict=True)
        failing = {language: text for language, text in sides if not passing(text, limits[language])}
        counts.read += 1
        if failing:
            language = min(failing)  # the first in the alphabet
            text = failing[language]
            short = any(UNITS[unit](text) < low for unit, (low, _) in limits[language].items())
            counts.dropped[language, "blank" if not visible(text) else "short" if short else "long"] += 1
        yield pair, not failing


@dataclass
class Tally:
    """How many pairs were read, and how many were dropped for what.

    ``dropped`` has a number for each language and :data:`REASONS`. A pair counts once, for the language that is first
    in the alphabet: the same in both directions.
    """

    read: int = 0
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def reasons(self) -> dict[str, dict[str, int]]:
        """The numbers of dropped pairs by language and reason, those that are none left out."""
        languages = sorted({language for language, _ in self.dropped})
        return {one: {why: n for why in REASONS if (n := self.dropped[one, why])} for one in languages}


# --- By a keyed hash: one pass, bounded memory, independent of the order of the pairs.

Subset = Literal["first", "keyed_hash"]
FEWEST = 10  # pairs that train and dev can be drawn from, unless fewer are asked for


def rank(pair: Pair, seed: int) -> int:
    """128-bit blake2b of (source, target), keyed by ``seed``: pairs of lower rank are drawn first."""
    text = "\0".join(pair).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16, key=str(seed).encode()).digest())


def bottom_k(pairs: Iterable[Pair], k: int, seed: int) -> list[Pair]:
    """The ``k`` distinct pairs of lowest rank, lowest first, in one pass and O(k) memory; all if there are fewer.

    The result does not depend on the order of the pairs; that of a smaller ``k`` is the beginning of that of a larger
    one.
    """
    heap: list[tuple[int, Pair]] = []  # minus its rank, and the pair: the highest rank is the first to go
    kept: set[int] = set()
    for pair in pairs:
        order = -rank(pair, seed)
        if order in kept:
            continue
        kept.add(order)
        if len(heap) < k:
            heappush(heap, (order, pair))
        else:
            removed, _ = heappushpop(heap, (order, pair))
            kept.remove(removed)
    return [pair for _, pair in sorted(heap, reverse=True)]


def split(pairs: Iterable[Pair], train: int, dev: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """At most ``train`` and ``dev`` pairs without a common pair, see :func:`shares`.

    Dev has the lowest ranks, train the next. So if only ``train`` changes, dev stays the same, and a smaller train set
    is part of a larger one.
    """
    drawn = bottom_k(pairs, train + dev, seed)
    train, dev = shares(len(drawn), train, dev)
    return drawn[dev : dev + train], drawn[:dev]


def shares(available: int, train: int, dev: int) -> tuple[int, int]:
    """How many of ``available`` pairs are for training and for development: as many as asked for, if there are enough.

    Of fewer pairs, dev gets what train leaves over, or a tenth if that is more. Raises InputError for fewer than ten.
    """
    if available >= train + dev:
        return train, dev
    if available < FEWEST:
        raise shortage(available, min(FEWEST, train + dev), "train + dev")
    dev = min(dev, max(available // 10, available - train))
    warn_fewer(available, train + dev, f"train + dev; {available - dev} are for training, {dev} for development")
    return available - dev, dev


def warn_fewer(available: int, wanted: int, what: str) -> None:
    """Say in the log that a source has fewer pairs than the config allows."""
    if available < wanted:
        note(f"corpus: the source has {available} of at most {wanted} pairs of {what}")


def subset(pairs: Iterable[Pair], limit: int | None, seed: int, reading: Subset) -> list[tuple[int, Pair]]:
    """``limit`` pairs, numbered from 1, in the order of the file; repeated pairs are kept.

    ``first`` takes the first pairs, ``keyed_hash`` those of lowest rank.
    """
    numbered = list(enumerate(pairs, 1))
    if limit is None:
        return numbered
    if reading == "first":
        return numbered[:limit]
    return sorted(sorted(numbered, key=lambda item: (rank(item[1], seed), item[0]))[:limit])


def draw(rows: Sequence[Mapping[str, str]], limit: int, seed: int, reading: Subset) -> list[int]:
    """The indices of at most ``limit`` rows of a test set, chosen as in :func:`subset`; ascending."""
    pairs = ((row["source"], row["target"]) for row in rows)
    return [number - 1 for number, _ in subset(pairs, limit, seed, reading)]


def shortage(available: int, wanted: int, what: str) -> InputError:
    """The error for a source with too few pairs."""
    return InputError(
        f"corpus: {what}",
        f"{wanted} distinct pairs are asked for, the source has {available}",
        "Ask for fewer pairs, widen the filters, or name a larger source.",
    )


# --- Training pairs as the scripts of the paper's authors draw them: a shuffled list, of which the first pairs are
# taken.
#
# There are two scripts. ``shuffle``, for Chinese: all pairs that pass the filters are shuffled. ``shuffle_rows``, for
# German: the rows of the data set are shuffled; of these, the first that pass, 5,000 more than there are training
# pairs, are shuffled again. In both, train is the beginning of the list, dev is what follows, and a pair that the
# data has twice may come twice.
#
# Only numbers of rows are shuffled: the data is read twice, and its texts are never held at once.

Shuffling = Literal["shuffle", "shuffle_rows"]
SPARE = 5000  # pairs that `shuffle_rows` shuffles beside the training pairs; dev pairs are among these


def shuffled_split(
    read: Callable[[], Iterable[tuple[Pair, bool]]], train: int, dev: int, seed: int, shuffling: Shuffling
) -> tuple[list[Pair], list[Pair]]:
    """``train`` and ``dev`` pairs of the rows that ``read`` gives on each call: a pair, and whether it passes.

    They are the most, see :func:`.sampling.shares`. The draw depends on which rows pass and on their order, and on no
    text.
    """
    passing = bytearray(passes for _, passes in read())
    order: MutableSequence[int]
    if shuffling == "shuffle_rows":
        order = _shuffled_rows(passing, train + SPARE, seed)
    else:
        # 32 bits: the data sets have tens of millions of rows.
        order = array("I", (row for row, passes in enumerate(passing) if passes))
    random.Random(seed).shuffle(order)
    wanted = order[: train + dev]
    del order, passing  # a data set has tens of millions of rows
    train, _ = shares(len(wanted), train, dev)
    place = {row: at for at, row in enumerate(wanted)}
    drawn = {place[row]: pair for row, (pair, _) in enumerate(read()) if row in place}
    pairs = [drawn[at] for at in range(len(wanted))]
    return pairs[:train], pairs[train:]


def _shuffled_rows(passing: bytearray, size: int, seed: int) -> list[int]:
    """The first ``size`` passing rows of the data set as `datasets.Dataset.shuffle` orders it."""
    import numpy as np  # only here, and it loads slowly

    order, passes = np.arange(len(passing), dtype=np.uint32), np.frombuffer(passing, dtype=bool)
    np.random.default_rng(seed).shuffle(order)  # as `permutation` does with numbers of 64 bits
    return order[passes[order]][:size].tolist()
