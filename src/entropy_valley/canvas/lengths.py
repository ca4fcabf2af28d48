"""Canvas lengths from source lengths."""

from __future__ import annotations

from fractions import Fraction


def candidate_length(ratio: float, source_tokens: int, reserve_eos_slot: bool = True, exact: bool = True) -> int:
    """max{1, floor(r·|x|)} slots, and one more for the EOS (the paper's candidate set, Algorithm 1).

    The ratio is taken as the decimal that the config says: in binary floating point 0.29 · 100 is 28.999…. Without
    ``exact`` it is that product.
    """
    product = Fraction(str(ratio)) * source_tokens // 1 if exact else int(float(ratio) * source_tokens)
    return max(1, product) + int(reserve_eos_slot)
