"""SIG against a distractor, once a sentence: how much less a slot wavers behind its source than behind another one.

It is the authors' SIG, and the one that counts unless a config says otherwise: H(slot | distractor) -
H(slot | source), both on the all-mask canvas. They divide it by log |V|, which changes no order. The distractor is
another source of the same test set whose number of words is within a fifth.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from entropy_valley.engine.reading import Reading


class Gain(NamedTuple):
    """The prompt of a sentence's distractor, and the SIG of each slot of one of its all-mask canvases (nats). Of
    anchors their slots, and 1 for each slot that is one."""

    distractor: Sequence[int]
    sigs: tuple[float, ...]


def distractors(sources: Sequence[str]) -> list[int]:
    """The place of each source's distractor: one of its length, drawn by its own place; any other source where none has
    that length; itself where all are the same.

    A text without spaces is one word.
    """
    words = np.array([len(source.split()) for source in sources])
    _, text = np.unique(np.array(sources), return_inverse=True)
    places = []
    for place, count in enumerate(words.tolist()):
        another = text != text[place]
        near = another & (words >= 4 * count // 5) & (words <= 6 * count // 5)
        found = np.flatnonzero(near if near.any() else another).tolist()
        places.append(random.Random(place).choice(found) if found else place)
    return places


def anchored(slots: Sequence[int], length: int) -> Gain:
    """Which slots of a canvas are anchors; those beyond its end are left out."""
    within = [slot for slot in slots if slot < length]
    return Gain(within, tuple(float(slot in within) for slot in range(length)))


def gains(own: Reading, distracted: Reading) -> tuple[float, ...]:
    """The SIG of each slot, from the readings of the same all-mask canvas behind the two prompts."""
    return tuple(other - one for one, other in zip(own.entropies, distracted.entropies, strict=True))
