"""An approximation: passes over a sentence that take the prompt's keys and values from an earlier one.

The probes of a length method are numbered from 0 in the order in which it asks for them, and so are the steps of a
canvas that reveal anything. In those whose number is a multiple of ``refresh`` the rows of the prompt are computed, as
in all passes of the exact engine; in others the slots attend to what these were in the last such pass.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

KEY, NEVER, PART = "prompt_cache", "never", "prompt cache"  # PART: of a decoder's name in signatures


def refresh_of(spec: Mapping[str, Any]) -> int | None:
    """What a job's spec says of it; of ``never`` more than there are passes, None of an exact job."""
    said = spec.get(KEY, 1)
    return sys.maxsize if said == NEVER else None if said == 1 else said


def modes(spec: Mapping[str, Any]) -> list[str]:
    """What a decoder's name says of it: nothing of an exact one."""
    said = spec.get(KEY, 1)
    return [] if said == 1 else [f"{PART}, {said} renewed" if said == NEVER else f"{PART} {said}"]


def footnote(decoder: str) -> str | None:
    """What a decoder of that name approximates; None of an exact one."""
    for part in decoder.split("|"):
        if part.startswith(PART):
            every = part.removeprefix(PART).strip()
            said = f"renewed every {every} passes" if every.isdigit() else "those of the first pass"
            return f"Approximate, {part}: the prompt's keys and values are {said} over a sentence."
    return None


def beside(lengths: Sequence[int], refresh: int | None) -> int | None:
    """Of the last of these probed ``lengths``, different ones in the order of their probes: the length whose probe
    computes the rows of the prompt for it; None if its own does."""
    number = len(lengths) - 1
    first = number if refresh is None else number // refresh * refresh
    return None if first == number else lengths[first]
