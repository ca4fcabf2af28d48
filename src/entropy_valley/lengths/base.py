"""What a length method is: it proposes canvas lengths to probe, and chooses one from what the model says of them.

To add one, read this page and :mod:`.ev`. A method is a class with ``propose`` and ``choose`` whose fields are its
settings, with its name as the default of ``method``, and a line in :mod:`entropy_valley.lengths`. :func:`choosing` at
the end of the page calls it.
"""

import functools
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from entropy_valley import plugins
from entropy_valley.decoding.canvas import SHORTEST, ProbeResult
from entropy_valley.errors import InputError, brief, listed
from entropy_valley.lengths.statistics import LengthLine, LengthStatistics, confidence_curve
from entropy_valley.settings import JsonObject, PerDirection, Printed, Ratios, Section

Probes = Mapping[int, ProbeResult]  # by the slots of the all-mask canvas that was read


@dataclass(frozen=True)
class Sentence:
    """What a length method knows about a sentence, apart from its probes.

    ``reference_tokens`` is None unless the method declares ``sees_reference``. ``predicted`` is None unless it declares
    ``uses_length_head``: the log-probabilities of the most probable canvas lengths, from one pass over the prompt.
    ``room`` is the largest number of slots that fits into the backbone's context; None if unknown. ``source`` is its
    text, for a method of your own: ours read the number of its tokens alone.
    """

    source_tokens: int
    reference_tokens: int | None = None
    predicted: Mapping[int, float] | None = None
    room: int | None = None
    source: str = ""

    @property
    def reference_slots(self) -> int:
        """The slots of the reference with its EOS. Raises InputError for a method that does not see it."""
        if self.reference_tokens is None:
            raise InputError("length method", "needs the reference, which it does not see", "Declare sees_reference.")
        return self.reference_tokens + 1


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


@dataclass(frozen=True)
class Example:
    """A development pair, for a method that learns: the sentence, the readings of the canvases that the method
    proposed for it, and the slots of its reference with the EOS."""

    sentence: Sentence
    probes: Probes
    length: int


class LengthMethod(Section):
    """Chooses the canvas length of each sentence. Its fields are its settings; the config's block is made from them.

    ``propose`` is called again after each round of probes, until it proposes nothing new. So a search can depend on
    earlier probes. ``probes`` maps each probed length to the reading of its all-mask canvas.

    A class without this base works too. It has ``sees_reference``, ``propose`` and ``choose``, and takes its settings
    as keyword arguments. It may declare the other attributes, and have ``learn`` and ``with_statistics``.
    """

    sees_reference: ClassVar[bool] = False  # each sentence has the length of its reference
    probes: ClassVar[bool] = True  # it reads all-mask canvases
    draft_steps: ClassVar[int] = 0  # or canvases that so many steps of minimum entropy have revealed in part
    uses_length_head: ClassVar[bool] = False  # each sentence has the predictions of the run's length head
    uses_statistics: ClassVar[Sequence[str]] = ()  # the parts of ``statistics`` that it uses, see :class:`Fitted`
    # It learns from development pairs, as many as its field ``pairs`` says. Its method ``learn`` gets an
    # :class:`Example` of each, and returns a copy that has learned, and what the header of the translations says of it.
    learns: ClassVar[bool] = False
    gives_probabilities: ClassVar[bool] = False  # its scores are negative log-probabilities of the lengths
    # By its name: of a positional default, a type checker without pydantic's plugin knows nothing.
    label: Printed[str | None] = Field(default=None, description="its printed name in tables and figures")
    short: Printed[str | None] = Field(default=None, description="the same where there is little room")

    @abstractmethod
    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        """Lengths whose all-mask canvas is to be probed. No length is probed twice."""

    @abstractmethod
    def choose(self, sentence: Sentence, probes: Probes) -> Choice:
        """The canvas length, from the sentence and its probes."""


class Unprobed:
    """A base for length methods that need no forward pass."""

    probes: ClassVar[bool] = False

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        return ()


def candidate_length(
    ratio: float | Fraction, source_tokens: int, reserve_eos_slot: bool = True, exact: bool = True
) -> int:
    """max{1, floor(r·|x|)} slots, and one more for the EOS (the paper's candidate set, Algorithm 1).

    The ratio is taken as the decimal that the config says: in binary floating point 0.29 · 100 is 28.999…. Without
    ``exact`` it is that product.
    """
    product = Fraction(str(ratio)) * source_tokens // 1 if exact else int(float(ratio) * source_tokens)
    return max(1, product) + int(reserve_eos_slot)


CandidateLength = Annotated[int, Field(ge=SHORTEST)]
EXACT = Field(
    None, description="false: multiply ratio and |x| in binary floating point; null: as `decoding.exact_products` says"
)


class OnRatios(LengthMethod):
    """A base for length methods with a grid of ratios."""

    ratios: PerDirection[Ratios] = Field(description="candidate ratios, by direction, or one list for all")
    exact: bool | None = EXACT

    def slots(self, ratio: float | Fraction, sentence: Sentence) -> int:
        """The candidate length of a ratio."""
        return candidate_length(ratio, sentence.source_tokens, exact=self.exact is not False)


class OnGrid(OnRatios):
    """A base for length methods that probe candidate lengths in one round: those of a grid of ratios, or given ones."""

    ONE_OF = ("ratios", "lengths")
    ratios: PerDirection[Ratios | None] = Field(  # type: ignore[assignment]
        None, description="candidate ratios, by direction, or one list for all; or give `lengths`"
    )
    lengths: Annotated[list[CandidateLength], Field(min_length=1)] | None = Field(
        None, description="candidate lengths in slots, that of the EOS included, whatever the source"
    )

    def propose(self, sentence: Sentence, probes: Probes) -> Iterable[int]:
        return self.lengths or {self.slots(ratio, sentence) for ratio in self.ratios or ()}


class Fitted(LengthMethod):
    """A base for length methods that use measurements on training pairs.

    ``statistics`` is measured, and not a setting. It has the parts that the class names: ``line``, ``confidence_bias``.
    While only the settings are checked, it has none.
    """

    uses_statistics: ClassVar[Sequence[str]] = ("line",)
    _statistics: LengthStatistics = LengthStatistics()

    def with_statistics(self, statistics: LengthStatistics) -> Self:
        """The same method with what was measured."""
        fitted = self.model_copy()
        fitted._statistics = statistics
        return fitted

    @property
    def statistics(self) -> LengthStatistics:
        return self._statistics

    @property
    def line(self) -> LengthLine:
        """The line of ``statistics``. Raises InputError where it was not measured."""
        return self._measured("line", self.statistics.line)

    def confidence_bias(self, length: int) -> float:
        """The mean max-probability that a length has by itself. Raises InputError where it was not measured."""
        return confidence_curve(length, *self._measured("confidence_bias", self.statistics.bias))

    def _measured(self, part: str, value: Any) -> Any:
        if value is None:
            problem = f"uses {part} of the statistics of training pairs, which were not measured"
            raise InputError(f"length method {type(self).__name__}", problem, "Let Translator.fitted make it.")
        return value


# --- How a method is made by its name, how it is called, and the canvas row that is made of its answer.

LENGTH_METHODS: dict[str, type[LengthMethod]] = {}  # by name: see the package
PARTS = ("sees_reference", "propose", "choose")  # what every method has


def make_method(name: str, settings: JsonObject, statistics: LengthStatistics | None = None) -> LengthMethod:
    """A length method from its settings for one direction. If they have the key ``method``, it names the class.

    If the class uses ``statistics``, the method gets them. Without them it can be made, but not used. Raises InputError
    if the name is unknown or the class refuses the settings.
    """
    keywords = {key: value for key, value in settings.items() if key != "method"}
    method = plugins.make("length method", LENGTH_METHODS, settings.get("method", name), keywords, PARTS)
    return method.with_statistics(statistics) if statistics and declared(method, "uses_statistics") else method


def find_method(name: str, settings: JsonObject) -> type:
    """The class of a length method; raises InputError where its name is unknown."""
    return plugins.find("length method", LENGTH_METHODS, settings.get("method", name))


def choosing(
    method: LengthMethod, sentence: Sentence, probe: Callable[[int], Any], name: object = None
) -> Generator[list[Any], list[ProbeResult], tuple[JsonObject, dict[int, ProbeResult]]]:
    """Yield the probes of one sentence, round by round; return its :func:`canvas_row`, and the readings by slots.

    ``probe`` makes the request for the reading of an all-mask canvas of so many slots. ``name`` is the sentence's in
    errors. Raises InputError for lengths below 1, for scores that are not finite, and for an answer that is not a
    choice.
    """
    about = f"sentence {name!r}"
    probes = yield from probing(method, sentence, probe, name)
    with plugins.calling(method, "choose", about):
        choice = method.choose(sentence, probes)
        if not isinstance(choice, Choice):
            remedy = "Return `Choice.lowest(scores)`, or `Choice(length, scores)`."
            raise plugins.refused(method, "choose", about, f"returns {brief(choice)}, which is not a Choice", remedy)
        # A user's own method may choose by numbers of numpy or torch; the row is JSON.
        whole = functools.partial(_whole, method, "choose", about)
        scores = {whole("scores", length): float(score) for length, score in choice.scores.items()}
        contenders = [whole("chooses", length) for length in choice.contenders]
        choice = Choice(whole("chooses", choice.length), scores, contenders, bool(choice.rescoring))
    if choice.length < 1:
        raise plugins.refused(method, "choose", about, f"chooses {choice.length} slots", "Choose 1 or more.")
    if bad := [f"{length} slots as {score}" for length, score in scores.items() if not math.isfinite(score)]:
        problem, remedy = f"scores {listed(bad)}", "Leave such lengths out of `scores`."
        raise plugins.refused(method, "choose", about, problem, remedy)
    return canvas_row(choice, sentence, probes, declared(method, "draft_steps") + 1), probes


def probing(
    method: LengthMethod, sentence: Sentence, probe: Callable[[int], Any], name: object = None
) -> Generator[list[Any], list[ProbeResult], dict[int, ProbeResult]]:
    """The first half of :func:`choosing`: yield what the method proposes, round by round; return the readings."""
    about = f"sentence {name!r}"
    probes: dict[int, ProbeResult] = {}
    while True:
        with plugins.calling(method, "propose", about):
            proposed = method.propose(sentence, probes)
            if not isinstance(proposed, Iterable):
                remedy = "Return a list of whole numbers, empty when nothing more is to be probed."
                raise plugins.refused(method, "propose", about, f"returns {brief(proposed)}", remedy)
            numbers = {_whole(method, "propose", about, "proposes", length) for length in proposed}
        lengths = sorted(numbers - probes.keys())
        if not lengths:
            return probes
        if lengths[0] < 1:
            raise plugins.refused(method, "propose", about, f"proposes {lengths[0]} slots", "Give 1 or more.")
        readings = yield [probe(length) for length in lengths]
        probes |= zip(lengths, readings, strict=True)


def _whole(method: LengthMethod, name: str, about: str, does: str, length: Any) -> int:
    """A length as an integer; raises InputError where it is none, such as 5.0."""
    try:
        return operator.index(length)
    except TypeError:
        raise plugins.refused(method, name, about, f"{does} {brief(length)} slots", "Give whole numbers.") from None


def declared(method: LengthMethod | type, name: str) -> Any:
    """What a length method or its class declares under a name: of one without :class:`LengthMethod` as its base perhaps
    only what is usual."""
    return getattr(method, name, getattr(LengthMethod, name))


def canvas_row(choice: Choice, sentence: Sentence, probes: Probes, passes: int = 1) -> JsonObject:
    """The choice, ``{length, candidates, scores, calls, slots}`` and perhaps ``apart`` and ``contenders``.

    ``candidates`` are the compared lengths, ascending, with their ``scores``; where nothing is compared, the chosen
    length alone. ``calls`` and ``slots`` are the probes as the paper counts them: ``passes`` each, and canvas slots in
    them; the pass over the prompt that a length head reads is one more, of no slots. Where there are probes too, the
    row has it also as ``apart``. ``contenders``, only where there are several: the lengths that are all to be decoded,
    ascending, ``length`` among them, and of the others those for which there is room; ``rescoring`` where the finished
    texts are then to be compared.
    """
    room = math.inf if sentence.room is None else sentence.room
    contenders = sorted({choice.length, *(length for length in choice.contenders if length <= room)})
    compared, apart = sorted(choice.scores), int(sentence.predicted is not None)
    row: dict[str, Any] = {
        "length": choice.length,
        "candidates": compared or [choice.length],
        "scores": [choice.scores[length] for length in compared],
        "calls": passes * len(probes) + apart,
        "slots": passes * sum(probes),
    }
    if apart and probes:
        row["apart"] = apart
    if len(contenders) > 1:
        row["contenders"] = contenders
        if choice.rescoring:
            row["rescoring"] = True
    return row
