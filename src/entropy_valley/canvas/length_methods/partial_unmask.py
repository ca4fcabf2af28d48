"""Partial unmask (of the authors' code): a long canvas, revealed in part, is cut at its first EOS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field, PositiveInt

from entropy_valley.canvas.length_methods.base import Choice, LengthMethod, Sentence
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import Rate


class PartialUnmask(LengthMethod):
    """A long canvas, revealed in part by minimum entropy, and cut at the first slot that expects the EOS.

    The canvas of ``ratio`` is denoised for ``steps`` of ``steps`` + 1 steps, then read once more. The length is the
    first slot whose most probable token is the EOS, that slot included; the whole canvas where there is none. A
    revealed slot counts with the token that it was revealed as. It costs ``steps`` + 1 calls.
    """

    ratio: Rate = Field(1.5, description="of the long canvas, which has a slot for the EOS too")
    steps: PositiveInt = Field(4, description="that reveal slots before the last pass")

    @property
    def draft_steps(self) -> int:
        """What :mod:`entropy_valley.engine.draft` runs before the reading."""
        return self.steps

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return (candidate_length(self.ratio, sentence.source_tokens),)

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        ((length, reading),) = probes.items()
        chances = zip(reading.logprobs, reading.eos_logprobs, strict=True)
        return Choice(next((slot for slot, (best, eos) in enumerate(chances, 1) if eos >= best), length))
