"""How many slots are revealed at each denoising step."""

from __future__ import annotations

from collections.abc import Callable

from entropy_valley.errors import InputError


def llada(length: int, steps: int) -> list[int]:
    """floor(L/T) slots at each of T steps, one more at the first L mod T (LLaDA's ``get_num_transfer_tokens``)."""
    each, more = divmod(length, steps)
    return [each + 1] * more + [each] * (steps - more)


def floors(length: int, steps: int) -> list[int]:
    """⌊L (t + 1) / T⌋ - ⌊L t / T⌋ slots at step t from 0 (the authors' code)."""
    return [length * (step + 1) // steps - length * step // steps for step in range(steps)]


RULES: dict[str, Callable[[int, int], list[int]]] = {"llada": llada, "floors": floors}


def reveal_counts(length: int, steps: int, rule: str = "llada") -> list[int]:
    """K_t for t = 1 … T; they sum to ``length``. Raises InputError for an unknown rule."""
    if rule not in RULES:
        raise InputError(f"schedule {rule!r}", "unknown", f"Name one of {', '.join(sorted(RULES))}.")
    return RULES[rule](length, steps)
