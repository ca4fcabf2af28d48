"""What a length selector is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.canvas.reading import Reading


@dataclass(frozen=True)
class Sentence:
    """All that a selector knows of a sentence; ``reference_tokens`` is None unless it declares ``sees_reference``.

    ``room`` is the most slots that the backbone's context leaves; None: nobody has said.
    """

    source_tokens: int
    reference_tokens: int | None = None
    room: int | None = None


@dataclass(frozen=True)
class Choice:
    """The chosen number of slots, and the score of each length that was compared (none: nothing was).

    The lowest score is the best, whatever the selector.
    """

    length: int
    scores: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def lowest(cls, scores: Mapping[int, float]) -> Self:
        """The length of the lowest score, the shorter one on an exact tie."""
        return cls(min(sorted(scores), key=scores.__getitem__), scores)


class Selector(Protocol):
    """Chooses the canvas of one sentence after another; built from its block of the config as keyword arguments.

    ``propose`` is asked again after each round of probes, so that a search can go on from what it has seen; it ends
    by proposing nothing new. ``probes`` maps each probed length to the reading of its all-mask canvas.

    A class that declares ``uses_statistics = True`` gets one keyword argument more, ``statistics``: the
    :class:`LengthStatistics` of the run, measured on training pairs. None: only its settings are being checked.
    """

    sees_reference: bool

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        """Lengths whose all-mask canvas is to be probed; those that were are not probed again."""
        ...

    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        """The canvas, from the probes alone."""
        ...


class Unprobed:
    """A selector that needs no forward pass."""

    sees_reference = False

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return ()


class OnGrid:
    """A selector that probes each candidate length of a grid of ratios, and nothing after."""

    sees_reference = False

    def __init__(self, ratios: Sequence[float]) -> None:
        self._ratios = ratios

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return {candidate_length(ratio, sentence.source_tokens) for ratio in self._ratios}
