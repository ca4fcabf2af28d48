"""Oracle: the reference's own length, an upper bound and no method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from entropy_valley.canvas.length_methods.base import Choice, LengthMethod, Sentence, Unprobed
from entropy_valley.engine.reading import Reading


class Oracle(Unprobed, LengthMethod):
    """The reference length: an upper bound, not a method.

    As many slots as the reference has tokens, and one for its EOS."""

    sees_reference: ClassVar[bool] = True

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        return Choice(sentence.reference_tokens + 1)
