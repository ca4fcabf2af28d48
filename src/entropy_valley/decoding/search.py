"""What goes into a beam search and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Search:
    """How translations are searched for.

    A hypothesis scores log p / length^``length_penalty``, its EOS counted. The search of a sentence ends with its
    first ``beams`` finished hypotheses, or after ``max_new_tokens`` tokens.
    """

    beams: int
    length_penalty: float
    max_new_tokens: int


@dataclass(frozen=True)
class Task:
    """A prompt to go on from, by at most ``limit`` tokens."""

    prompt: Sequence[int]
    limit: int


@dataclass(frozen=True)
class Found:
    """The best hypothesis: its tokens before the EOS, whether there was one, and the mean log-probability of all."""

    tokens: list[int]
    finished: bool
    logprob: float

    def to_json(self) -> dict[str, Any]:
        return vars(self)
