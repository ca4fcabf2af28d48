"""Names that nothing has, and which of the names that there are they may mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from entropy_valley.errors import listed

FEW = 8  # of no more names than these, a message lists all


def nearest(name: object, names: Iterable[object]) -> list[str]:
    """At most three of the names that are much like ``name``, the likeliest first."""
    return difflib.get_close_matches(str(name), list(dict.fromkeys(map(str, names))))


def question(name: object, names: Iterable[object]) -> str:
    """The names that may be meant, as the beginning of a remedy; empty if there are none."""
    *first, last = nearest(name, names) or [""]
    return f"Did you mean {' or '.join(filter(None, (', '.join(first), last)))}? " if last else ""


def unknown(name: object, problem: str, names: Iterable[object], holder: str = "there is", most: int = FEW) -> str:
    """``problem``, the names that may be meant, and which there are: of more than ``most`` only the first ones.
    ``holder`` says where they are, as "`sources` has"."""
    names = list(dict.fromkeys(map(str, names)))
    hint, near = question(name, names), nearest(name, names)
    listing = listed(names, most) or "none"
    if near and len(names) > most:
        listing = f"these and {len(names) - len(near)} more"
    return f"{problem}; {hint[:1].lower()}{hint[1:]}{holder} {listing}"
