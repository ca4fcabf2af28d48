"""Entropy-Valley (the paper's Algorithm 1): the candidate whose all-mask canvas the model is surest about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.canvas.reading import Reading
from entropy_valley.canvas.selectors.base import Choice, Sentence


class EntropyValley:
    """Smallest mean entropy (nats) over the first L - 1 slots of the all-mask canvas; the shorter one on a tie.

    Means are compared after rounding to six decimals, which are those that the canvas file shows: float32 noise of
    another batch, thread count or machine then cannot turn a tie into a choice.
    """

    sees_reference = False

    def __init__(self, ratios: Sequence[float]) -> None:
        self._ratios = ratios

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return {candidate_length(ratio, sentence.source_tokens) for ratio in self._ratios}

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        scores = {length: mean_entropy(reading) for length, reading in probes.items()}
        return Choice(min(sorted(scores), key=scores.__getitem__), scores)


def mean_entropy(reading: Reading) -> float:
    """Mean over all slots but the last, the one that is kept for the EOS; six decimals."""
    content = reading.entropies[:-1]
    return round(math.fsum(content) / len(content), 6)
