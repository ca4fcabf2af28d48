"""Realised-ratio reassignment: a method's canvas ratios, dealt to other sentences of the same test set.

The paper's control (sec. "Selector checks"): the distribution of the ratios stays, the pairing of source and canvas
goes. What to expect of a ratio drawn at random from those that EV realised is the mean over many permutations; each is
a method of its own here.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from pydantic import Field, PositiveInt

from entropy_valley.engine.context import SHORTEST
from entropy_valley.settings import Name, Section

DECILES = 10


class Reassigned(Section):
    """Another method's canvas ratios, dealt to other sentences: a control, which probes nothing."""

    of: Name = Field("ev", description="the method whose ratios L/|x| are permuted")
    seed: PositiveInt = Field(description="of the permutation")
    within: Literal["all", "deciles"] = Field(
        "all", description="deciles: only between sentences of the same decile of source length"
    )


def reassign(lengths: Sequence[int], sources: Sequence[int], seed: int, within: str) -> list[int]:
    """New canvas lengths: the ratios L/|x| are permuted, and each is taken of its new sentence, to the nearest slot.

    ``lengths`` are slots, the EOS's included, ``sources`` tokens; an empty source counts as one token. Ratios are exact
    fractions: a sentence that is dealt its own ratio keeps its own length. ``within`` "all" permutes over the whole
    test set, "deciles" within each tenth of it by source length.
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
