"""Oracle: the reference's own length, an upper bound and no method."""

from __future__ import annotations

from collections.abc import Mapping

from entropy_valley.canvas.length_methods.base import Choice, Sentence, Unprobed
from entropy_valley.engine.reading import Reading


class Oracle(Unprobed):
    """As many slots as the reference has tokens, and one for its EOS."""

    sees_reference = True

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(sentence.reference_tokens + 1)
