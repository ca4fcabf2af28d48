"""The prompt cache: which passes over a sentence compute its prompt, and what the others take from them.

It is an approximation that a config may ask for. The probes of a length method are numbered from 0 in the order in
which it asks for them, and so are the steps of a canvas that reveal anything. In those whose number is a multiple of
``refresh`` the rows of the prompt are computed, as in all passes of the exact engine; in others the slots attend to
the keys and values that the prompt had in the last such pass.

Under prefix attention the rows of a prompt never see a canvas, so they are shared exactly, whatever is asked for here.
What is kept, and the rows of each pass, are in :mod:`.prompts`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

KEY, NEVER, PART = "prompt_cache", "never", "prompt cache"  # PART: of a decoder's name in signatures

PromptIds = tuple[int, ...]

RowSource = tuple[PromptIds, int]  # a prompt, and how many masked slots behind it its rows see


@dataclass(frozen=True)
class Reuse:
    """Which passes compute the prompt of one canvas. With nothing set all of its own do, which is exact.

    With ``refresh`` each of its passes whose number (from 0) is a multiple of it; with ``beside`` one over an all-mask
    canvas of that many slots behind the same prompt. ``is_source``: canvases ``beside`` this one may come when it is
    done.
    """

    refresh: int | None = None
    beside: int | None = None
    is_source: bool = False

    @property
    def is_renewed(self) -> bool:
        """Whether some passes of the canvas compute its prompt for others of the same canvas."""
        return self.refresh is not None

    @property
    def key(self) -> list[Any]:
        """What the store's key of a result says of it: nothing where it is exact."""
        parts = {"refresh": self.refresh, "beside": self.beside}.items()
        return [part for name, value in parts if value is not None for part in (name, value)]

    def renews(self, step: int, is_kept: bool) -> bool:
        """Whether the ``step``-th pass computes the rows of the prompt for later ones."""
        return self.is_renewed and not (is_kept and step % self.refresh)

    def sources(self, prompts: Sequence[PromptIds]) -> list[RowSource]:
        """The sequences that compute the rows of a canvas's prompts; none if its own passes do."""
        return [] if self.beside is None else [(prompt, self.beside) for prompt in prompts]


NO_REUSE = Reuse()


@dataclass(frozen=True)
class CachePolicy:
    """What a job asks for: the prompt is computed in every ``refresh``-th pass; None: in all. ValueError below 1."""

    refresh: int | None = None

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise ValueError(f"refresh is {self.refresh}: the prompt is computed in every k-th pass, k at least 1")

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """What a job's spec says; for ``never`` more than there are passes."""
        setting = spec.get(KEY, 1)
        return cls(sys.maxsize if setting == NEVER else None if setting == 1 else setting)

    @property
    def is_exact(self) -> bool:
        return self.refresh is None

    @property
    def names(self) -> list[str]:
        """What a decoder's name says of it: nothing of an exact one."""
        if self.is_exact:
            return []
        return [f"{PART}, {NEVER} renewed" if self.refresh == sys.maxsize else f"{PART} {self.refresh}"]

    def of_probe(self, lengths: Sequence[int]) -> Reuse:
        """For the last of the ``lengths`` that a sentence's probes have, different ones in the order of the probes."""
        if self.is_exact:
            return NO_REUSE
        number = len(lengths) - 1
        first = number // self.refresh * self.refresh
        return Reuse(is_source=self.refresh > 1) if first == number else Reuse(beside=lengths[first])

    def of_canvas(self, passes: int) -> Reuse:
        """For a canvas of so many passes; one pass is exact."""
        return NO_REUSE if self.is_exact or passes == 1 else Reuse(min(self.refresh, passes))

    def saved(self, steps: Sequence[int]) -> int:
        """How many of these steps take the prompt from an earlier one of them."""
        return 0 if self.is_exact else sum(step % self.refresh > 0 for step in steps[1:])


NO_CACHE = CachePolicy()
