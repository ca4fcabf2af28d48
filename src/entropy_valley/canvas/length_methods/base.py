"""What a length method is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pydantic import Field

from entropy_valley.canvas.lengths import candidate_length
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.engine.reading import Reading
from entropy_valley.settings import PerDirection, Ratios, Section


@dataclass(frozen=True)
class Sentence:
    """All that a length method knows of a sentence beside its probes.

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

    The lowest score is the best, whatever the method. Where there are ``contenders``, they are all decoded, and the
    translation of the best mean log-probability is kept; ``length``, one of them, is the method's own first choice.
    """

    length: int
    scores: Mapping[int, float] = field(default_factory=dict)
    contenders: Sequence[int] = ()

    @classmethod
    def lowest(cls, scores: Mapping[int, float]) -> Self:
        """The length of the lowest score, the shorter one on an exact tie."""
        return cls(min(sorted(scores), key=scores.__getitem__), scores)


class LengthMethod(Section):
    """Chooses the canvas of one sentence after another. Its fields are its settings: the config's block of the method
    is made of them.

    ``propose`` is asked again after each round of probes, so that a search can go on from what it has seen; it ends
    by proposing nothing new. ``probes`` maps each probed length to the reading of its all-mask canvas.

    A class of another kind works too: it has ``sees_reference``, ``propose`` and ``choose``, takes its settings as
    keyword arguments, and may declare the other three.
    """

    sees_reference: ClassVar[bool] = False  # each sentence says how long its reference is
    probes: ClassVar[bool] = True  # it reads all-mask canvases
    uses_length_head: ClassVar[bool] = False  # each sentence says what the run's length head predicts
    uses_statistics: ClassVar[bool] = False  # it takes one keyword argument more, see :class:`Fitted`

    @abstractmethod
    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        """Lengths whose all-mask canvas is to be probed; those that were are not probed again."""

    @abstractmethod
    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        """The canvas, from the probes alone."""


class Unprobed:
    """What a length method inherits that needs no forward pass."""

    sees_reference = False
    probes = False

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return ()


class OnGrid(LengthMethod):
    """Probes each candidate length of a grid of ratios, and nothing after."""

    ratios: PerDirection[Ratios] = Field(description="candidate ratios, by direction, or one list for all")

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return {candidate_length(ratio, sentence.source_tokens) for ratio in self.ratios}


class Fitted(LengthMethod):
    """Uses what the run's checkpoint makes of training pairs.

    ``statistics`` is no setting but measured; None: only the settings are being checked.
    """

    uses_statistics: ClassVar[bool] = True
    _statistics: LengthStatistics | None = None

    def __init__(self, statistics: LengthStatistics | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._statistics = statistics

    @property
    def statistics(self) -> LengthStatistics | None:
        return self._statistics
