"""Length filters by language: in words (split at white space) or in characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from entropy_valley.data.sampling import Pair
from entropy_valley.errors import InputError

Filters = Mapping[str, Mapping[str, Sequence[int]]]
Passing = Callable[[str, Mapping[str, Sequence[int]]], bool]

REASONS = ("blank", "short", "long")
PATIENCE = 20_000  # filters that let one of a thousand pairs pass practically never drop as many in a row
UNITS = {"words": lambda text: len(text.split()), "characters": len}


def within(text: str, limits: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text is within all ``limits`` (low, high), both included; an empty text is not."""
    return bool(text) and all(low <= UNITS[unit](text) <= high for unit, (low, high) in limits.items())


def accepts(text: str, limits: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text is not blank and :func:`within` the limits."""
    return bool(text.strip()) and within(text, limits)


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
            problem = f"{PATIENCE:,} pairs in a row were dropped, and this source never ends ({counts.described})"
            raise InputError("corpus.filters", problem, "Widen the filters: perhaps no sentence passes them.")


def judged(
    pairs: Iterable[Pair], direction: str, filters: Filters, counts: Tally, passing: Passing
) -> Iterator[tuple[Pair, bool]]:
    """Every pair, and whether ``passing`` says so of both sides and their limits; counted as :func:`filtered` does."""
    languages = direction.split("-")
    source_limits, target_limits = (filters.get(language, {}) for language in languages)
    for source, target in pairs:
        passes = passing(source, source_limits) and passing(target, target_limits)
        counts.read += 1
        if not passes:
            counts.drop(dict(zip(languages, (source, target), strict=True)), filters, passing)
        yield (source, target), passes


@dataclass
class Tally:
    """How many pairs were read, and how many were dropped for what.

    ``dropped`` has a number for each language and :data:`REASONS`. A pair counts once, for the language that is first
    in the alphabet: the same in both directions.
    """

    read: int = 0
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)

    def drop(self, texts: Mapping[str, str], filters: Filters, passing: Passing) -> None:
        """Count a pair, given by language, that does not pass."""
        language, text = next(item for item in sorted(texts.items()) if not passing(item[1], filters.get(item[0], {})))
        self.dropped[language, _reason(text, filters.get(language, {}))] += 1

    @property
    def counts(self) -> dict[str, int]:
        """Pairs read, and those that the filters dropped."""
        return {"read": self.read, "filtered": self.dropped.total()}

    @property
    def reasons(self) -> dict[str, dict[str, int]]:
        """The numbers of dropped pairs by language and reason, those that are none left out."""
        languages = sorted({language for language, _ in self.dropped})
        return {one: {why: n for why in REASONS if (n := self.dropped[one, why])} for one in languages}

    @property
    def described(self) -> str:
        """:attr:`reasons` in words."""
        return ", ".join(f"{one} {why}: {n:,}" for one, whys in self.reasons.items() for why, n in whys.items())


def _reason(text: str, limits: Mapping[str, Sequence[int]]) -> str:
    """Why a text does not pass."""
    if not text.strip():
        return "blank"
    return "short" if any(UNITS[unit](text) < low for unit, (low, _) in limits.items()) else "long"
