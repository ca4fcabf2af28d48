"""How the masks of a canvas are filled: the reveal orders, the schedule, and the requests that fill a canvas.

A new order is a class and a line in ``ORDERS``, or a user's own ``module:Class``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from pydantic import Field

from entropy_valley import files, plugins
from entropy_valley.decoding.prompts import NO_CACHE, CachePolicy
from entropy_valley.decoding.requests import VALUES, Canvas, Decoded, Probe, ProbeResult
from entropy_valley.decoding.variable_length import VARIABLE_LENGTH, Guess, advanced
from entropy_valley.errors import InputError
from entropy_valley.revisions import SOURCE_GUIDED
from entropy_valley.settings import MOST_STEPS, RandomSeed, Section, Share

if TYPE_CHECKING:
    import torch

    from entropy_valley.decoding.engine import Engine
    from entropy_valley.decoding.head import SlotValues
    from entropy_valley.decoding.prompts import Reuse
    from entropy_valley.decoding.requests import Canvases, Gain, Request
    from entropy_valley.decoding.variable_length import GrowingCanvas, VariableLengthDecoder


@dataclass(frozen=True)
class Slots:
    """The masked slots of all canvases of a pass, canvas by canvas in slot order.

    Per slot: ``canvas`` (index into ``canvases``), ``position`` (from 0), ``values``, and for a :class:`SourceGuided`
    order ``sig``, how much the slot depends on the source (nats, float64); for one that wants anchors it is 1 at these
    and 0 elsewhere. It is NaN for all other orders, and a stepwise one in canvases whose step does not need it.
    Per canvas: ``step``, how many of its steps that reveal anything are done.
    """

    canvases: Sequence[Canvas]
    canvas: torch.Tensor
    position: torch.Tensor
    step: torch.Tensor
    values: SlotValues
    sig: torch.Tensor

    def on_device(self, *columns: Sequence[float] | np.ndarray) -> tuple[torch.Tensor, ...]:
        """Columns of numbers, such as one for each canvas, as tensors beside the others; the host does not wait."""
        from entropy_valley.model.attention import upload  # here: what only names an order imports no torch

        return upload([np.asarray(column) for column in columns], self.step.device)


class Order(Protocol):
    """Scores masked slots; of each canvas the lowest are revealed, ties going to the lower position.

    The store knows an order by its class's name and its settings: code that has changed needs another name.
    """

    def scores(self, slots: Slots) -> torch.Tensor:
        """One float per masked slot."""
        ...


class SourceGuided(Section):
    """An order that asks for the SIG of a slot. The paper names such orders and defines neither.

    With ``distractor``, the authors', it is known before the first step: H(y_i | distractor) - H(y_i | source) on the
    all-mask canvas. With ``stepwise_kl`` it is KL(p(y_i | source, canvas)
    ‖ p(y_i | no source, canvas)) at each step, the second distribution being that behind the prompt of an empty source;
    this source-free pass runs beside the other wherever :meth:`needs_sourceless` says so.
    """

    sig: Literal["distractor", "stepwise_kl"] = Field(
        default="distractor",
        description="the SIG of a slot: the entropy behind a distractor less that behind the source, once; or a "
        "divergence from the source-free distribution at each step, with the formulas of the order that go with it",
    )

    def needs_sourceless(self, step: int, steps: int) -> bool:
        """Whether the step (from 0) of ``steps`` looks at a stepwise SIG."""
        return True


def looks_at_distractor(order: Any) -> bool:
    """Whether an order wants the SIG against a distractor, which is known before the first step."""
    return getattr(order, "sig", None) == "distractor"


def looks_at_anchors(order: Any) -> bool:
    """Whether an order wants to know which slots a gold alignment ties to the source."""
    return getattr(order, "anchored", False)


def needs_sourceless(order: Order | None, step: int, steps: int) -> bool:
    """Whether a step of an order runs its canvas without the source too; an order without the method of that name never
    does."""
    needs = getattr(order, "needs_sourceless", None)
    if needs is None or looks_at_distractor(order):
        return False
    with plugins.calling(order, "needs_sourceless", f"step {step} of {steps}"):
        return bool(needs(step, steps))


def sourceless_steps(order: Order | None, passes: int, steps: int) -> int:
    """How many of the first ``passes`` of ``steps`` steps look at a stepwise SIG: each takes another pass."""
    return sum(needs_sourceless(order, step, steps) for step in range(passes))


class MinimumEntropy(Section):
    """The slots whose distribution has the lowest entropy come first."""

    order: Literal["med"] = "med"

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.values.entropy


class SigFirst(SourceGuided):
    """The slots of the largest SIG come first."""

    order: Literal["sig_first"] = "sig_first"

    def scores(self, slots: Slots) -> torch.Tensor:
        return -slots.sig


class ReverseSig(SourceGuided):
    """The slots of the smallest SIG come first."""

    order: Literal["reverse_sig"] = "reverse_sig"

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.sig


class Hybrid(SourceGuided):
    """Minimum entropy in the first ⌊p · T⌋ of T steps, SIG-first in the others.

    The steps that reveal nothing are spread evenly over the T, as :func:`moments` says. With ``stepwise_kl`` it is the
    first ⌊p · n⌋ of the n steps that reveal anything: the same where p · T is a whole number. ``p`` is taken as the
    decimal that the config has; in the paper it is 0.25, 0.50 and 0.75.
    """

    order: Literal["hybrid"] = "hybrid"
    in_time: ClassVar[bool] = True  # with a distractor it looks at T
    p: Share = Field(description="the share of the steps by entropy")

    def needs_sourceless(self, step: int, steps: int) -> bool:
        return step >= self._by_entropy(steps, 0)

    def scores(self, slots: Slots) -> torch.Tensor:
        (bounds,) = slots.on_device([self._by_entropy(len(one.counts), one.budget) for one in slots.canvases])
        by_entropy = (slots.step < bounds)[slots.canvas]
        return slots.values.entropy.where(by_entropy, -slots.sig)

    @functools.cached_property
    def _share(self) -> Fraction:
        return Fraction(str(self.p))

    def _by_entropy(self, steps: int, budget: int) -> int:
        """How many of the ``steps`` that reveal anything are among the first p · T; T = 0: the share of them alone."""
        return steps * (self._share * budget // 1) // budget if budget else self._share * steps // 1


class EntropyWeightedSig(SourceGuided):
    """From the most certain slots at the first step over to those of the largest SIG at the last.

    Of α · SIG / max SIG + (1 - α) · (1 - H scaled from 0 to 1) the largest come first: both over the slots of the
    canvas that are masked, a negative SIG counting as 0, α = t / (T - 1) with the :func:`moments` t. With
    ``stepwise_kl`` it is the largest SIG · e^-H: e^H, the perplexity, is the number of tokens that a slot still wavers
    between, and a certain slot keeps its whole SIG.
    """

    order: Literal["entropy_weighted_sig"] = "entropy_weighted_sig"
    in_time: ClassVar[bool] = True  # with a distractor it looks at T

    def scores(self, slots: Slots) -> torch.Tensor:
        sig, entropy = slots.sig, slots.values.entropy
        if not looks_at_distractor(self):
            return -sig * (-entropy).exp()
        sig = sig.clamp(min=0)
        share = moments(slots)[slots.canvas]
        low = -_largest(slots, -entropy)
        certain = 1 - _over(entropy - low, _largest(slots, entropy) - low)
        return -(share * _over(sig, _largest(slots, sig)) + (1 - share) * certain)


def _largest(slots: Slots, numbers: torch.Tensor) -> torch.Tensor:
    """For each slot the largest number of its canvas."""
    unset = numbers.new_full((len(slots.canvases),), -math.inf)
    return unset.scatter_reduce(0, slots.canvas, numbers, "amax")[slots.canvas]


def _over(numbers: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
    """Numbers divided by the largest; 0 where that is 0."""
    return (numbers / most).where(most > 0, 0.0)


def moments(slots: Slots) -> torch.Tensor:
    """t / (T - 1) of each canvas's step: 0 at the first of the T steps, 1 at the last.

    t is the step, from 0, at which floors reveal: of the n steps that reveal anything, the k-th is at ⌈T (k + 1) / n⌉ -
    1. With LLaDA's schedule these come first, and T - n empty ones behind them; this way a canvas has the same result
    under both.
    """
    pairs = [(len(canvas.counts), canvas.budget) for canvas in slots.canvases]
    counts, budgets = slots.on_device(*zip(*pairs, strict=True))
    return (-(-budgets * (slots.step + 1) // counts) - 1).double() / (budgets - 1).clamp(min=1)


class LeftToRight(Section):
    """The first masked slots come first. The model's predictions play no part."""

    order: Literal["left_to_right"] = "left_to_right"

    def scores(self, slots: Slots) -> torch.Tensor:
        return slots.position.double()


class OracleAnchor(Section):
    """The slots that a gold alignment ties to the source come first, from left to right; then minimum entropy.

    An order of the authors' code, an analysis and no system: it knows the reference. Only on canvases of the
    reference's length its slots are those of the reference.
    """

    order: Literal["oracle_anchor"] = "oracle_anchor"
    anchored: ClassVar[bool] = True

    def scores(self, slots: Slots) -> torch.Tensor:
        before = slots.position.double() - slots.position.max() - 1  # entropies are not below 0
        return before.where(slots.sig > 0, slots.values.entropy.double())


class Random(Section):
    """A permutation of the slots, drawn once per canvas from ``seed``, the prompt's tokens and the length.

    It does not depend on the batch, the step or the checkpoint: all training runs of a backbone reveal a sentence in
    the same order.
    """

    order: Literal["random"] = "random"
    seed: RandomSeed = Field(1, description="of the permutations")

    def scores(self, slots: Slots) -> torch.Tensor:
        drawn = [_drawn(self.seed, tuple(canvas.prompt), canvas.length) for canvas in slots.canvases]
        starts = list(itertools.accumulate(map(len, drawn[:-1]), initial=0))
        (first,), (numbers,) = slots.on_device(starts), slots.on_device(np.concatenate(drawn))
        return numbers[first[slots.canvas] + slots.position]


def priorities(seed: int, prompt: Sequence[int], length: int) -> list[float]:
    """One number in [0, 1) per slot; the lowest is revealed first. Python promises the same numbers everywhere."""
    draw = random.Random(int(files.digest([seed, list(prompt), length]), 16))
    return [draw.random() for _ in range(length)]


@functools.lru_cache(maxsize=4096)  # the canvases of a pass: their next steps ask for the same numbers
def _drawn(seed: int, prompt: tuple[int, ...], length: int) -> np.ndarray:
    return np.array(priorities(seed, prompt, length))


ORDERS: dict[str, type[Section]] = {
    kind.model_fields["order"].default: kind
    for kind in (MinimumEntropy, SigFirst, ReverseSig, Hybrid, EntropyWeightedSig, LeftToRight, OracleAnchor, Random)
}


def scored(order: Order, slots: Slots) -> torch.Tensor:
    """What an order says of each slot. Raises InputError where a user's own does not return one number a slot;
    :func:`not_a_number` is for NaN."""
    if type(order) in ORDERS.values():
        return order.scores(slots)
    import torch

    about = f"sentence {slots.canvases[0].sentence!r} and all in its pass"
    with plugins.calling(order, "scores", about):
        scores = order.scores(slots)
    if not isinstance(scores, torch.Tensor) or scores.shape != slots.position.shape:
        problem = f"returned {type(scores).__name__} {tuple(getattr(scores, 'shape', ()))}"
        remedy = f"Return a tensor with one number for each of the {len(slots.position)} slots."
        raise plugins.refused(order, "scores", about, problem, remedy)
    return scores


def not_a_number(order: Order | None, canvas: Canvas, slot: int, step: int) -> InputError:
    """The error for an order, or without one the model, that gives a slot NaN at a step (both from 0)."""
    if order is None:
        remedy = "Its weights or its adapter are damaged, or diverged in training: fetch or make them again."
        return InputError("model", f"gives NaN for slot {slot} of a canvas of {canvas.length} slots", remedy)
    about = f"sentence {canvas.sentence!r}, canvas of {canvas.length} slots, slot {slot}, step {step}"
    remedy = "Give every masked slot a number. A stepwise SIG is NaN in steps that `needs_sourceless` leaves out."
    return plugins.refused(order, "scores", about, "gives NaN", remedy)


def reveals_masks(spec: Mapping[str, Any]) -> bool:
    """Whether the mask token is in all distributions of a job, so that it may be revealed (`decoding.mask_token`)."""
    return spec.get("mask_token", "never") != "never"


KNOWN: dict[str, type[Section]] = ORDERS | VARIABLE_LENGTH  # the config names either where it asks for an order


@dataclass(frozen=True)
class Denoising:
    """A reveal order with the step budget T and the schedule rule, or a variable-length decoder, which takes neither.

    ``name`` and ``settings`` are as the config has them: the store knows results by them. ``mask_token``: whether that
    may be revealed.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    order: Order | None = None
    steps: int = 0
    schedule: str = ""
    variable_length: VariableLengthDecoder | None = None
    mask_token: bool = False

    @classmethod
    def named(cls, name: str, steps: int, schedule: str, settings: Mapping[str, Any] | None = None) -> Self:
        """What ``name`` says, one of ours or ``module:Class``; raises InputError where that is neither of the two, for
        steps that are no such number, and for an unknown schedule."""
        if not isinstance(steps, Integral) or isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS:
            problem = f"{steps!r}, not a number from 1 to {MOST_STEPS:,}"
            raise InputError("steps", problem, "Give the step budget T, such as 32.")
        reveal_counts(1, steps, schedule)  # raises for an unknown one
        denoiser = make_denoiser(name, settings)
        if hasattr(denoiser, "advance"):
            return cls(name, settings or {}, variable_length=denoiser)
        return cls(name, settings or {}, denoiser, steps, schedule)

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """What a decoding job's spec says."""
        denoising = cls.named(spec["order"], spec["steps"], spec["schedule"], spec["order_settings"])
        return dataclasses.replace(denoising, mask_token=reveals_masks(spec))

    def counts(self, length: int) -> list[int]:
        """Slots revealed at each step that reveals any; the others change nothing and are not run."""
        return [count for count in reveal_counts(length, self.steps, self.schedule) if count]

    def masked(self, length: int, passes: int) -> list[int]:
        """The slots that are still masked in each of the first ``passes`` passes over a canvas."""
        revealed = itertools.accumulate(self.counts(length)[: passes - 1], initial=0)
        return [length - before for before in revealed]

    def request(
        self,
        prompt: Sequence[int],
        sourceless: Sequence[int] | None,
        length: int,
        room: int,
        start: ProbeResult | None = None,
        gain: Gain | None = None,
        *,
        sentence: object = None,
        cache: CachePolicy = NO_CACHE,
    ) -> FixedLength | VariableLength:
        """What is asked of the engine for ``length`` masks behind a prompt that leaves ``room`` slots of the context.

        ``gain``: for an order that :attr:`looks_at_distractor` or at anchors; ``cache``: of prompts, which a
        variable-length decoder does not use. The other arguments are those of :class:`.Canvas`.
        """
        if decoder := self.variable_length:
            most = min(decoder.cap, room)
            return VariableLength(decoder, prompt, length, most, self.name, self.settings, start, sentence)
        counts = self.counts(length)
        compared = sourceless if sourceless_steps(self.order, len(counts), len(counts)) else None
        budget = self.steps if self.looks_at_distractor and getattr(self.order, "in_time", False) else 0
        distractor, sigs = gain or (None, ())
        reuse = self.reuse(length, cache)
        start = None if reuse.refresh else start
        canvas = Canvas(
            prompt, length, counts, start, compared, sigs=sigs, budget=budget, sentence=sentence, reuse=reuse
        )
        return FixedLength(canvas, self.name, self.settings, distractor)

    def reuse(self, length: int, cache: CachePolicy) -> Reuse:
        """Which passes over a canvas of so many slots compute its prompt."""
        return cache.of_canvas(len(self.counts(length)) + self.mask_token)

    @property
    def is_own(self) -> bool:
        """Whether a user has written it."""
        return plugins.is_own(self.order or self.variable_length)

    @property
    def looks_at_distractor(self) -> bool:
        """Whether its order wants the SIG against a distractor."""
        return looks_at_distractor(self.order)

    @property
    def calls(self) -> int:
        """Passes of the method as the paper counts them: T, and two for a SIG against a distractor, or one for each
        step that looks at a stepwise SIG."""
        return self.steps + 2 * self.looks_at_distractor + sourceless_steps(self.order, self.steps, self.steps)

    @property
    def label(self) -> str:
        """Name and settings in one word, for signatures."""
        shown = {"sig": "distractor", **self.settings} if self.looks_at_distractor else self.settings
        settings = ",".join(f"{key}={value}" for key, value in sorted(shown.items()))
        return f"{self.name}({settings})" if settings else self.name


def make_denoiser(name: str, settings: Mapping[str, Any] | None = None) -> Order | VariableLengthDecoder:
    """The reveal order or variable-length decoder that ``name`` says, built with ``settings`` as keyword arguments;
    raises InputError where it is neither."""
    if hasattr(plugins.find("reveal order", KNOWN, name), "advance"):
        return plugins.make("variable-length decoder", KNOWN, name, settings or {}, ("advance", "cap"))
    return plugins.make("reveal order", KNOWN, name, settings or {}, ("scores",))


def llada(length: int, steps: int) -> list[int]:
    """floor(L/T) slots at each of T steps, one more at the first L mod T (LLaDA's ``get_num_transfer_tokens``)."""
    each, more = divmod(length, steps)
    return [each + 1] * more + [each] * (steps - more)


def floors(length: int, steps: int) -> list[int]:
    """⌊L (t + 1) / T⌋ - ⌊L t / T⌋ slots at step t from 0 (the authors' code)."""
    return [length * (step + 1) // steps - length * step // steps for step in range(steps)]


RULES: dict[str, Callable[[int, int], list[int]]] = {"llada": llada, "floors": floors}


def reveal_counts(length: int, steps: int, rule: str = "llada") -> list[int]:
    """K_t for t = 1 … T; they sum to ``length``. Raises InputError for an unknown rule."""
    if rule not in RULES:
        raise InputError(f"schedule {rule!r}", "unknown", f"Name one of {', '.join(sorted(RULES))}.")
    return RULES[rule](length, steps)


@dataclass(frozen=True)
class FixedLength:
    """A canvas to be revealed in its schedule by the order of that name and settings; the engine runs the order.

    One whose prompt is renewed begins with a pass over its prompt, be the reading of its masks known or not.
    """

    result: ClassVar[type] = Decoded

    canvas: Canvas
    order: str
    settings: Mapping[str, Any]
    distractor: Sequence[int] | None = None

    @property
    def key(self) -> list[Any]:
        """The step budget T is not in it, unless the order looks at it: for L ≤ T all T reveal one slot in each of L
        steps, and are one decode. A SIG against a distractor is that prompt's, and anchors are known by their slots."""
        it = self.canvas
        compared: list[Any] | None = None if it.sourceless is None else list(it.sourceless)
        if self.distractor is not None:
            compared = [SOURCE_GUIDED, list(self.distractor), it.budget]
        canvas = [list(it.prompt), compared, it.length, list(it.counts), *it.reuse.key]
        return ["decode", *canvas, self.order, dict(self.settings)]

    def canvases(self, engine: Engine, stored: Callable[[Request], Any]) -> Canvases:
        if self.canvas.reuse.refresh:
            return (yield self.canvas)
        start = self.canvas.start or stored(Probe(self.canvas.prompt, self.canvas.length))
        return (yield dataclasses.replace(self.canvas, start=start))


@dataclass(frozen=True)
class Draft:
    """The request for the reading of ``length`` masks behind a prompt after ``steps`` of ``steps`` + 1 steps.

    A step reveals the slots of the lowest entropy, by the schedule :func:`floors`. The reading has all slots: of a
    revealed one what its own step read, of the others what the last pass reads.
    """

    result: ClassVar[type] = ProbeResult

    prompt: Sequence[int]
    length: int
    steps: int

    @property
    def key(self) -> list[Any]:
        return ["draft", list(self.prompt), self.length, self.steps]

    def canvases(self, engine: Engine, stored: Callable[[Request], Any]) -> Canvases:
        mask, hidden = engine.backbone.mask_id, list(range(self.length))
        tokens, seen = [mask] * self.length, [(mask, 0.0, 0.0, 0.0)] * self.length
        reading, counts = stored(Probe(self.prompt, self.length)), floors(self.length, self.steps + 1)
        for step in range(self.steps + 1):
            if reading is None:
                revealed = len(hidden) < self.length
                reading = yield Canvas(self.prompt, self.length, tokens=list(tokens) if revealed else None)
            columns = (getattr(reading, name) for name in VALUES)
            for slot, values in zip(hidden, zip(*columns, strict=True), strict=True):
                seen[slot] = values
            count = counts[step] if step < self.steps else 0
            for slot in sorted(hidden, key=lambda slot: (seen[slot][1], slot))[:count]:
                tokens[slot] = seen[slot][0]
            hidden = [slot for slot in hidden if tokens[slot] == mask]
            reading = None if count else reading  # nothing revealed: the next pass would read the same
        return ProbeResult(*zip(*seen, strict=True))


@dataclass(frozen=True)
class DecodedVariableLength(Decoded):
    """A decoded canvas of its final length; ``slots`` summed over all its passes, ``rows`` the masked ones of these."""

    slots: int
    rows: int


@dataclass(frozen=True)
class VariableLength:
    """``length`` masks behind a prompt that may grow to ``most``, to be denoised by the decoder of that name and
    settings; ``start`` and ``sentence`` are those of :class:`.Canvas`."""

    result: ClassVar[type] = DecodedVariableLength

    decoder: VariableLengthDecoder
    prompt: Sequence[int]
    length: int
    most: int
    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    start: ProbeResult | None = None
    sentence: object = None

    @property
    def key(self) -> list[Any]:
        return ["filling", list(self.prompt), self.length, self.name, dict(self.settings)]

    def canvases(self, engine: Engine, stored: Callable[[Request], Any]) -> Canvases:
        backbone = engine.backbone
        slots: GrowingCanvas = [None] * self.length
        passes = run = rows = 0
        reading = self.start or stored(Probe(self.prompt, self.length))
        while None in slots:
            if reading is None:
                tokens = [backbone.mask_id if slot is None else slot.token for slot in slots]
                reading = yield Canvas(self.prompt, len(slots), tokens=tokens if passes else None)
            run, rows = run + len(slots), rows + slots.count(None)
            guesses = map(Guess, reading.tokens, reading.logprobs, reading.eos_logprobs)
            # A slot that was revealed as a mask is read again, and stays as it is.
            read = [next(guesses) if slot is None or slot.token == backbone.mask_id else slot for slot in slots]
            seen = [guess if slot is None else slot for slot, guess in zip(slots, read, strict=True)]
            about, reading = f"sentence {self.sentence!r}, pass {passes}", None
            slots = advanced(self.decoder, seen, backbone.eos_id, passes, self.most, about)
            passes += 1
        revealed = [slot for slot in slots if slot is not None]
        tokens = [slot.token for slot in revealed]
        text = tokens.index(backbone.eos_id) if backbone.eos_id in tokens else len(tokens)
        mean = round(math.fsum(slot.logprob for slot in revealed[:text]) / text, 4) if text else None
        return DecodedVariableLength(tokens, text, mean, passes, run, rows)
