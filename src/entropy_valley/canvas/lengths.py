"""Canvas lengths from source lengths."""

from __future__ import annotations

from fractions import Fraction


def candidate_length(ratio: float, source_tokens: int, reserve_eos_slot: bool = True) -> int:
    """max{1, floor(r·|x|)} slots, and one more for the EOS (the paper's candidate set, Algorithm 1).

    The ratio is taken as the decimal that the config says: in binary floating point 0.29 · 100 is 28.999….
    """
    return max(1, Fraction(str(ratio)) * source_tokens // 1) + int(reserve_eos_slot)
