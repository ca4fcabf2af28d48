"""Which sentences annotators see: the largest wins of either system, the nearest scores, and some of the rest.

The paper's packs have 25 sentences of each of the four buckets, chosen by COMET.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from entropy_valley import files
from entropy_valley.errors import InputError

BUCKETS = ("first_best", "second_best", "tied", "random")


@dataclass(frozen=True)
class Sentence:
    """A test sentence with the outputs of both systems; ``difference`` is the first's score minus the second's."""

    id: str
    source: str
    reference: str
    first: str
    second: str
    difference: float


def choose(sentences: Sequence[Sentence], sizes: Mapping[str, int], seed: int) -> list[tuple[Sentence, str]]:
    """Distinct sentences, each with its bucket; ``sizes`` has the number of each of BUCKETS.

    ``first_best`` and ``second_best`` have the largest differences in favour of a system, ``tied`` the smallest of the
    rest that are not zero. ``random`` are drawn from what is left, by the smallest keyed hash. Equal differences keep
    the order of the test set. Raises :class:`InputError` for a bucket that has too few sentences.
    """
    left, chosen = list(sentences), []
    for bucket in BUCKETS:
        ranked = _ranked(bucket, left, seed)
        if len(ranked) < sizes[bucket]:
            problem = f"{sizes[bucket]} sentences are asked for, but the test set has {len(ranked)} left for it"
            remedy = f"Lower it to {len(ranked)} or less, or take a larger test set."
            raise InputError(f"human_evaluation.sentences.{bucket}", problem, remedy)
        taken = ranked[: sizes[bucket]]
        chosen += [(sentence, bucket) for sentence in taken]
        left = [sentence for sentence in left if sentence not in taken]
    return chosen


def _ranked(bucket: str, sentences: Sequence[Sentence], seed: int) -> list[Sentence]:
    if bucket == "first_best":
        return sorted((one for one in sentences if one.difference > 0), key=lambda one: -one.difference)
    if bucket == "second_best":
        return sorted((one for one in sentences if one.difference < 0), key=lambda one: one.difference)
    if bucket == "tied":
        return sorted((one for one in sentences if one.difference), key=lambda one: abs(one.difference))
    return sorted(sentences, key=lambda one: files.digest([seed, "random", one.id]))
