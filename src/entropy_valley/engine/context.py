"""What a backbone's context leaves for a canvas behind each prompt."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from entropy_valley.engine.distractor import distractors
from entropy_valley.errors import InputError, SentenceError

if TYPE_CHECKING:
    from entropy_valley.engine.finished import Texts

SHORTEST = 2  # slots: one of content and the EOS's


@dataclass(frozen=True)
class Inputs:
    """The prompt tokens of each sentence, those of an empty source, and the context: the most tokens of a sequence.

    ``file`` and ``names`` tell an error which sentence it is about; ``sources`` are the texts, of which distractors are
    drawn; ``aligned`` has the slots of each reference that a gold alignment ties to its source, None where none is
    given; ``texts`` knows the text of a translation.
    """

    file: object
    names: Sequence[object]
    prompts: Sequence[Sequence[int]]
    sourceless: Sequence[int]
    context: int
    sources: Sequence[str] = ()
    aligned: Sequence[Sequence[int] | None] = ()
    texts: Texts | None = None

    def distractor(self, place: int) -> int:
        """The place of the sentence whose prompt a SIG compares with that at ``place``."""
        return self._distractors[place]

    @functools.cached_property
    def _distractors(self) -> list[int]:
        return distractors(self.sources)

    def anchors(self, place: int) -> Sequence[int]:
        """The slots that are aligned with the source; raise InputError where no alignment is given."""
        known = self.aligned[place] if self.aligned else None
        if known is None:
            problem = f"sentence {self.names[place]!r} has no `anchors`, which the order oracle_anchor reveals first"
            raise InputError(self.file, problem, "Give the test set's source a file of `anchors`.")
        return known

    @property
    def rooms(self) -> list[int]:
        """The slots that the context leaves behind each prompt, at least the shortest canvas's: :meth:`check` says what
        is too long."""
        return [max(SHORTEST, self.context - len(prompt)) for prompt in self.prompts]

    def fits(self, place: int, slots: int) -> bool:
        """Whether a canvas of so many slots behind the prompt at ``place`` is within the context."""
        return len(self.prompts[place]) + slots <= self.context

    def check(self, place: int, slots: int) -> None:
        """Raise SentenceError if a canvas of so many slots behind the prompt at ``place`` exceeds the context."""
        if not self.fits(place, slots):
            prompt = len(self.prompts[place])
            raise SentenceError(
                self.file,
                f"sentence {self.names[place]!r}: prompt {prompt} + canvas {slots} = {prompt + slots} tokens, "
                f"but the backbone's context is {self.context}",
                "Split or drop the sentence, or choose smaller ratios.",
            )

    def room(self, place: int) -> int:
        """The tokens of the context behind the prompt at ``place``; raise SentenceError where there are none."""
        prompt = len(self.prompts[place])
        if prompt >= self.context:
            raise SentenceError(
                self.file,
                f"sentence {self.names[place]!r}: prompt of {prompt} tokens, but the backbone's context is "
                f"{self.context} and must hold the translation too",
                "Split or drop the sentence.",
            )
        return self.context - prompt
