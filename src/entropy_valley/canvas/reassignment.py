"""Realised-ratio reassignment: a method's canvas ratios, given to other sentences of the same test set.

The paper's control (sec. "Selector checks"): it keeps the distribution of the ratios, and breaks the pairing of source
and canvas. The mean over many permutations estimates the score of a ratio that is drawn at random from EV's. Each
permutation is a method of its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveInt

from entropy_valley.engine.context import SHORTEST
from entropy_valley.settings import Name, Section

if TYPE_CHECKING:
    from entropy_valley.engine.job import Job

DECILES = 10


class Reassigned(Section):
    """A control: another method's canvas ratios, given to other sentences. It probes nothing."""

    of: Name = Field("ev", description="the method whose ratios L/|x| are permuted")
    seed: PositiveInt = Field(description="of the permutation")
    within: Literal["all", "deciles"] = Field(
        "all", description="deciles: only between sentences of the same decile of source length"
    )


def reassigned_rows(job: Job, settings: Mapping[str, Any], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """The canvas rows of a job's sentences, from the ``lengths`` that another method has given all of them.

    ``settings`` are those of :class:`Reassigned`. The ratios are those that other sentences have probed: this method's
    own probes are none. Raises InputError for a canvas that exceeds the context.
    """
    tokens = job.identity.prompt.tokens
    sources = [len(tokens(row["source"])) for row in job.rows]
    dealt = reassign(lengths, sources, settings["seed"], settings["within"])
    for place, length in enumerate(dealt):
        job.inputs.check(place, length)
    return [{"length": length, "candidates": [length], "scores": [], "calls": 0, "slots": 0} for length in dealt]


def reassign(lengths: Sequence[int], sources: Sequence[int], seed: int, within: str) -> list[int]:
    """New canvas lengths: the ratios L/|x| are permuted, and each is multiplied by its new sentence's source length.

    ``lengths`` are slots with that of the EOS, ``sources`` are tokens; an empty source counts as one token. The result
    is rounded to the nearest slot. Ratios are exact fractions, so a sentence with its own ratio keeps its length.
    ``within`` "all" permutes over the whole test set, "deciles" within each tenth of it by source length.
    """
    counts = [max(1, count) for count in sources]
    generator, dealt = random.Random(seed), [0] * len(lengths)
    for group in _groups(counts, within):
        givers = list(group)
        generator.shuffle(givers)
        for place, giver in zip(group, givers, strict=True):
            dealt[place] = max(SHORTEST, round(Fraction(lengths[giver], counts[giver]) * counts[place]))
    return dealt


def _groups(sources: Sequence[int], within: str) -> list[list[int]]:
    """The sentences that exchange ratios: all, or tenths of nearly equal size; equal sources in the file's order."""
    if within == "all":
        return [list(range(len(sources)))]
    ranked = sorted(range(len(sources)), key=sources.__getitem__)
    bounds = [len(ranked) * part // DECILES for part in range(DECILES + 1)]
    return [ranked[first:last] for first, last in itertools.pairwise(bounds)]
