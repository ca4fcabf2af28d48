"""How much of a sentence's dependence on its source sits in a few slots.

The paper names a sentence-level SIG-Concentration and does not define it; its authors' code takes the Gini coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def concentration(sigs: Sequence[float], settings: Mapping[str, Any]) -> float:
    """That of the SIG of all L ≥ 1 slots of the all-mask canvas, by the ``measure`` of the config's block; a negative
    SIG counts as 0."""
    positive = [max(0.0, sig) for sig in sigs]
    return gini(positive) if settings["measure"] == "gini" else top_share(positive, settings["share"])


def gini(numbers: Sequence[float]) -> float:
    """The Gini coefficient of numbers that are not negative, in [0, 1 - 1/n]: 2 Σ i x_i / (n Σ x) - (n + 1) / n, the
    i-th smallest being x_i; 0 where all are 0."""
    total, count = math.fsum(numbers), len(numbers)
    ranked = math.fsum(place * number for place, number in enumerate(sorted(numbers), 1))
    return 2 * ranked / (count * total) - (count + 1) / count if total else 0.0


def top_share(numbers: Sequence[float], share: float) -> float:
    """Share of their sum that the ⌈``share`` · n⌉ largest of numbers that are not negative have, in [``share``, 1].

    Where all are 0, all count the same.
    """
    top = math.ceil(round(share * len(numbers), 9))  # 0.2 · 15 is 3, whatever binary floating point says
    total = math.fsum(numbers)
    return math.fsum(sorted(numbers, reverse=True)[:top]) / total if total else top / len(numbers)
