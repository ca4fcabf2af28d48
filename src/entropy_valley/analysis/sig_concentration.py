"""How much of a sentence's dependence on its source sits in a few slots."""

from __future__ import annotations

import math
from collections.abc import Sequence


def sig_concentration(sigs: Sequence[float], share: float = 0.2) -> float:
    """Share of the total SIG that the ⌈``share`` · L⌉ slots of the largest have, in [``share``, 1].

    ``sigs`` are those of all L ≥ 1 slots of the all-mask canvas, in nats, none negative. The paper names a
    sentence-level SIG-Concentration and does not define it. Where no slot depends on the source, all count the same.
    """
    top = math.ceil(round(share * len(sigs), 9))  # 0.2 · 15 is 3, whatever binary floating point says
    total = math.fsum(sigs)
    return math.fsum(sorted(sigs, reverse=True)[:top]) / total if total else top / len(sigs)
