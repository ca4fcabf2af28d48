"""Fixed Ratio: one corpus ratio for every sentence of a direction."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from entropy_valley.canvas.length_methods.base import EXACT, Choice, LengthMethod, Sentence, Unprobed
from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import PerDirection, Rate


class Ratio(Unprobed, LengthMethod):
    """One corpus ratio per direction."""

    ratios: PerDirection[Rate] = Field(description="by direction, or one for all")
    reserve_eos_slot: bool = Field(
        False, description="one slot more than ratio · |x|, for the EOS, as EV and Oracle have it; false: as the paper"
    )
    exact: bool | None = EXACT

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        exact = self.exact is not False
        return Choice(candidate_length(self.ratios, sentence.source_tokens, self.reserve_eos_slot, exact))
