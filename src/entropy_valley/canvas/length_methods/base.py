"""What a length selector is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.engine.reading import Reading


@dataclass(frozen=True)
class Sentence:
    """All that a selector knows of a sentence beside its probes.

    ``reference_tokens`` is None unless it declares ``sees_reference``. ``predicted`` is None unless it declares
    ``uses_length_head``: the log-probability of each of the likeliest canvas lengths, from one pass over the prompt.
    ``room`` is the most slots that the backbone's context leaves; None: nobody has said.
    """

    source_tokens: int
    reference_tokens: int | None = None
    predicted: Mapping[int, float] | None = None
    room: int | None = None


@dataclass(frozen=True)
class Choice:
    """The chosen number of slots, and the score of each length that was compared (none: nothing was).

    The lowest score is the best, whatever the selector. Where there are ``contenders``, they are all decoded, and the
    translation of the best mean log-probability is kept; ``length``, one of them, is the selector's own first choice.
    """

    length: int
    scores: Mapping[int, float] = field(default_factory=dict)
    contenders: Sequence[int] = ()

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
    To one that declares ``uses_length_head = True`` each sentence says what the run's length head predicts.
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
