"""Names that nothing has, and which known ones they may mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from entropy_valley.errors import listed

FEW = 8  # of no more names than these, a message lists all


class Unknown(str):
    """A message about a name that is unknown. ``meant`` is the known name most like it, None if none is."""

    def __new__(cls, message: str, name: object, near: list[str]) -> Unknown:
        self = super().__new__(cls, message)
        self.name, self.meant = name, next(iter(near), None)
        return self


def nearest(name: object, known: Iterable[object]) -> list[str]:
    """At most three known names that are much like ``name``, the likeliest first."""
    return difflib.get_close_matches(str(name), list(dict.fromkeys(map(str, known))))


def either(names: Sequence[str]) -> str:
    """One or more names as a choice: "a, b or c"."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def question(name: object, known: Iterable[object]) -> str:
    """The known names that may be meant, as the beginning of a remedy; empty if there are none."""
    near = nearest(name, known)
    return f"Did you mean {either(near)}? " if near else ""


def unknown(name: object, problem: str, known: Iterable[object], holder: str = "there is", most: int = FEW) -> Unknown:
    """``problem``, the known names that may be meant, and which there are: of more than ``most`` only the first ones.
    ``holder`` says where they are, as "`sources` has"."""
    names = list(dict.fromkeys(map(str, known)))
    near = nearest(name, names)
    there = listed(names, most) or "none"
    if near and len(names) > most:
        there = f"these and {len(names) - len(near)} more"
    asked = f"did you mean {either(near)}? " if near else ""
    return Unknown(f"{problem}; {asked}{holder} {there}", name, near)
