"""What a length method is: it proposes canvas lengths to probe, and chooses one from what the model says of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

from pydantic import Field

from entropy_valley.decoding.requests import Reading
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.settings import PerDirection, Ratios, Section


def candidate_length(ratio: float, source_tokens: int, reserve_eos_slot: bool = True, exact: bool = True) -> int:
    """max{1, floor(r·|x|)} slots, and one more for the EOS (the paper's candidate set, Algorithm 1).

    The ratio is taken as the decimal that the config says: in binary floating point 0.29 · 100 is 28.999…. Without
    ``exact`` it is that product.
    """
    product = Fraction(str(ratio)) * source_tokens // 1 if exact else int(float(ratio) * source_tokens)
    return max(1, product) + int(reserve_eos_slot)


EXACT = Field(
    None, description="false: multiply ratio and |x| in binary floating point; null: as `decoding.exact_products` says"
)


@dataclass(frozen=True)
class Sentence:
    """What a length method knows about a sentence, apart from its probes.

    ``reference_tokens`` is None unless the method declares ``sees_reference``. ``predicted`` is None unless it declares
    ``uses_length_head``: the log-probabilities of the most probable canvas lengths, from one pass over the prompt.
    ``room`` is the largest number of slots that fits into the backbone's context; None if unknown.
    """

    source_tokens: int
    reference_tokens: int | None = None
    predicted: Mapping[int, float] | None = None
    room: int | None = None


@dataclass(frozen=True)
class Choice:
    """The chosen number of slots, and the score of each length that was compared. The lowest score is the best.

    If there are ``contenders``, all of them are decoded, and the translation with the best mean log-probability is
    kept: at reveal time, or with ``rescoring`` of the finished text. ``length`` is one of them, the method's first
    choice.
    """

    length: int
    scores: Mapping[int, float] = field(default_factory=dict)
    contenders: Sequence[int] = ()
    rescoring: bool = False

    @classmethod
    def lowest(cls, scores: Mapping[int, float]) -> Self:
        """The length of the lowest score, the shorter one on an exact tie."""
        return cls(min(sorted(scores), key=scores.__getitem__), scores)


class LengthMethod(Section):
    """Chooses the canvas length of each sentence. Its fields are its settings; the config's block is made from them.

    ``propose`` is called again after each round of probes, until it proposes nothing new. So a search can depend on
    earlier probes. ``probes`` maps each probed length to the reading of its all-mask canvas.

    A class without this base works too. It has ``sees_reference``, ``propose`` and ``choose``, and takes its settings
    as keyword arguments. It may declare the other four attributes.
    """

    sees_reference: ClassVar[bool] = False  # each sentence has the length of its reference
    probes: ClassVar[bool] = True  # it reads all-mask canvases
    draft_steps: ClassVar[int] = 0  # or canvases that so many steps of minimum entropy have revealed in part
    uses_length_head: ClassVar[bool] = False  # each sentence has the predictions of the run's length head
    uses_statistics: ClassVar[bool] = False  # it takes the keyword argument ``statistics``, see :class:`Fitted`

    @abstractmethod
    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        """Lengths whose all-mask canvas is to be probed. No length is probed twice."""

    @abstractmethod
    def choose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Choice:
        """The canvas length, from the sentence and its probes."""


class Unprobed:
    """A base for length methods that need no forward pass."""

    sees_reference = False
    probes = False

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return ()


class OnGrid(LengthMethod):
    """A base for length methods that probe the candidate lengths of a grid of ratios, in one round."""

    ratios: PerDirection[Ratios] = Field(description="candidate ratios, by direction, or one list for all")
    exact: bool | None = EXACT

    def propose(self, sentence: Sentence, probes: Mapping[int, Reading]) -> Iterable[int]:
        return {self.slots(ratio, sentence) for ratio in self.ratios}

    def slots(self, ratio: float, sentence: Sentence) -> int:
        """The candidate length of a ratio."""
        return candidate_length(ratio, sentence.source_tokens, exact=self.exact is not False)


class Fitted(LengthMethod):
    """A base for length methods that use measurements of the run's checkpoint on training pairs.

    ``statistics`` is measured, and no setting. It is None while only the settings are checked.
    """

    uses_statistics: ClassVar[bool] = True
    _statistics: LengthStatistics | None = None

    def __init__(self, statistics: LengthStatistics | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._statistics = statistics

    @property
    def statistics(self) -> LengthStatistics | None:
        return self._statistics
