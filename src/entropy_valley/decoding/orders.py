"""In which order the masks of a canvas are revealed, and how many at each step.

A new order is a class and a line in ``ORDERS``, or a user's own ``module:Class``.
"""

from __future__ import annotations

import functools
import math
import random
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, PositiveInt

from entropy_valley import files, plugins
from entropy_valley.decoding.canvas import Canvas
from entropy_valley.errors import InputError
from entropy_valley.settings import RandomSeed, Section, Share

if TYPE_CHECKING:
    from torch import Tensor

    from entropy_valley.decoding.batch import Slots


BEYOND = 1000.0  # nats: more than any entropy, and than a log-probability that decides anything


class Order(Section):
    """Scores masked slots; of each canvas the lowest are revealed, ties going to the lower position.

    Its fields are its settings. The store knows an order by its class's name and its settings: code that has changed
    needs another name.
    """

    label: ClassVar[str]  # its printed name
    anchored: ClassVar[bool] = False  # its canvases have the slots that a gold alignment ties to the source
    in_time: ClassVar[bool] = False  # with a distractor, its scores depend on the step budget T

    @property
    def looks_at_distractor(self) -> bool:
        """Whether it wants the SIG against a distractor, which is known before the first step."""
        return False

    @abstractmethod
    def scores(self, slots: Slots) -> Tensor:
        """One number per masked slot."""

    def scored(self, slots: Slots) -> Tensor:
        """The same. Raises InputError where a user's own order does not return one number a slot; NaN may be one."""
        if type(self) in ORDERS.values():
            return self.scores(slots)
        about = f"sentence {slots.canvases[0].sentence!r} and all in its pass"
        with plugins.calling(self, "scores", about):
            scores = self.scores(slots)
        if not isinstance(scores, type(slots.position)) or scores.shape != slots.position.shape:
            problem = f"returned {type(scores).__name__} {tuple(getattr(scores, 'shape', ()))}"
            remedy = f"Return a tensor with one number for each of the {len(slots.position)} slots."
            raise plugins.refused(self, "scores", about, problem, remedy)
        return scores

    def not_a_number(self, canvas: Canvas, slot: int, step: int) -> InputError:
        """The error for an order that gives a slot NaN at a step (both from 0)."""
        about = f"sentence {canvas.sentence!r}, canvas of {canvas.length} slots, slot {slot}, step {step}"
        remedy = "Give every masked slot a number. A stepwise SIG is NaN in steps that `needs_sourceless` leaves out."
        return plugins.refused(self, "scores", about, "gives NaN", remedy)


class SourceGuided(Order):
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

    @property
    def looks_at_distractor(self) -> bool:
        return self.sig == "distractor"

    def needs_sourceless(self, step: int, steps: int) -> bool:
        """Whether the step (from 0) of ``steps`` looks at a stepwise SIG: its canvas then runs without the source
        too."""
        return True


def needs_sourceless(order: Order | None, step: int, steps: int) -> bool:
    """Whether a step of an order runs its canvas without the source too; with a distractor none does."""
    if not isinstance(order, SourceGuided) or order.looks_at_distractor:
        return False
    with plugins.calling(order, "needs_sourceless", f"step {step} of {steps}"):
        return bool(order.needs_sourceless(step, steps))


def sourceless_steps(order: Order | None, steps: int) -> int:
    """How many of ``steps`` steps look at a stepwise SIG: each takes another pass."""
    return sum(needs_sourceless(order, step, steps) for step in range(steps))


class MinimumEntropy(Order):
    """The slots whose distribution has the lowest entropy come first."""

    order: Literal["med"] = "med"
    label = "MED"

    def scores(self, slots: Slots) -> Tensor:
        return slots.values.entropy


class SigFirst(SourceGuided):
    """The slots of the largest SIG come first."""

    order: Literal["sig_first"] = "sig_first"
    label = "SIG-first"

    def scores(self, slots: Slots) -> Tensor:
        return -slots.sig


class ReverseSig(SourceGuided):
    """The slots of the smallest SIG come first."""

    order: Literal["reverse_sig"] = "reverse_sig"
    label = "Reverse-SIG"

    def scores(self, slots: Slots) -> Tensor:
        return slots.sig


class Hybrid(SourceGuided):
    """Minimum entropy in the first ⌊p · T⌋ of T steps, SIG-first in the others.

    The steps that reveal nothing are spread evenly over the T, as :func:`moments` says. With ``stepwise_kl`` it is the
    first ⌊p · n⌋ of the n steps that reveal anything: the same where p · T is a whole number. ``p`` is taken as the
    decimal that the config has; in the paper it is 0.25, 0.50 and 0.75.
    """

    order: Literal["hybrid"] = "hybrid"
    label = "Hybrid MED→SIG"
    in_time = True  # with a distractor it looks at T
    p: Share = Field(description="the share of the steps by entropy")

    def needs_sourceless(self, step: int, steps: int) -> bool:
        return step >= self._by_entropy(steps, 0)

    def scores(self, slots: Slots) -> Tensor:
        (bounds,) = slots.on_device([self._by_entropy(len(canvas.counts), canvas.budget) for canvas in slots.canvases])
        by_entropy = (slots.step < bounds)[slots.canvas]
        return slots.values.entropy.where(by_entropy, -slots.sig)

    def _by_entropy(self, steps: int, budget: int) -> int:
        """How many of the ``steps`` that reveal anything are among the first p · T; T = 0: the share of them alone."""
        share = Fraction(str(self.p))
        return steps * (share * budget // 1) // budget if budget else share * steps // 1


class EntropyWeightedSig(SourceGuided):
    """From the most certain slots at the first step over to those of the largest SIG at the last.

    Of α · SIG / max SIG + (1 - α) · (1 - H scaled from 0 to 1) the largest come first: both over the slots of the
    canvas that are masked, a negative SIG counting as 0, α = t / (T - 1) with the :func:`moments` t. With
    ``stepwise_kl`` it is the largest SIG · e^-H: e^H, the perplexity, is the number of tokens that a slot still wavers
    between, and a certain slot keeps its whole SIG.
    """

    order: Literal["entropy_weighted_sig"] = "entropy_weighted_sig"
    label = "Entropy-weighted SIG"
    in_time = True  # with a distractor it looks at T

    def scores(self, slots: Slots) -> Tensor:
        sig, entropy = slots.sig, slots.values.entropy
        if not self.looks_at_distractor:
            return -sig * (-entropy).exp()
        sig = sig.clamp(min=0)
        share = moments(slots)[slots.canvas]
        low = -_largest(slots, -entropy)
        certain = 1 - _over(entropy - low, _largest(slots, entropy) - low)
        return -(share * _over(sig, _largest(slots, sig)) + (1 - share) * certain)


def _largest(slots: Slots, numbers: Tensor) -> Tensor:
    """For each slot the largest number of its canvas."""
    unset = numbers.new_full((len(slots.canvases),), -math.inf)
    return unset.scatter_reduce(0, slots.canvas, numbers, "amax")[slots.canvas]


def _over(numbers: Tensor, most: Tensor) -> Tensor:
    """Numbers divided by the largest; 0 where that is 0."""
    return (numbers / most).where(most > 0, 0.0)


def moments(slots: Slots) -> Tensor:
    """t / (T - 1) of each canvas's step: 0 at the first of the T steps, 1 at the last.

    t is the step, from 0, at which floors reveal: of the n steps that reveal anything, the k-th is at ⌈T (k + 1) / n⌉ -
    1. With LLaDA's schedule these come first, and T - n empty ones behind them; this way a canvas has the same result
    under both.
    """
    pairs = [(len(canvas.counts), canvas.budget) for canvas in slots.canvases]
    counts, budgets = slots.on_device(*zip(*pairs, strict=True))
    return (-(-budgets * (slots.step + 1) // counts) - 1).double() / (budgets - 1).clamp(min=1)


class LeftToRight(Order):
    """The first masked slots come first. The model's predictions play no part."""

    order: Literal["left_to_right"] = "left_to_right"
    label = "Strict L2R"

    def scores(self, slots: Slots) -> Tensor:
        return slots.position.double()


class Blocks(Order):
    """One block of slots after another, from left to right; the surest slots of the first unfinished block come first.

    LLaDA's ``generate`` is this order by confidence, where its blocks and steps divide the canvas and T. Here the
    schedule is that of the whole canvas: where a step reveals more than a block has left, the next one begins.
    """

    order: Literal["blocks"] = "blocks"
    label = "Blocks, MED inside"
    block_length: PositiveInt = Field(32, description="slots of a block")
    by: Literal["entropy", "confidence"] = Field(
        "entropy", description="the lowest entropy of a slot, or the largest probability of its most probable token"
    )

    def scores(self, slots: Slots) -> Tensor:
        block = (slots.position // self.block_length).double()
        ahead = block + _largest(slots, -block)  # blocks behind the first unfinished one: 0 in that
        score = slots.values.entropy if self.by == "entropy" else -slots.values.logprob
        return score + BEYOND * ahead


class OracleAnchor(Order):
    """The slots that a gold alignment ties to the source come first, from left to right; then minimum entropy.

    An order of the authors' code, an analysis and no system: it knows the reference. Only on canvases of the
    reference's length its slots are those of the reference.
    """

    order: Literal["oracle_anchor"] = "oracle_anchor"
    label = "Oracle anchors, then MED"
    anchored = True

    def scores(self, slots: Slots) -> Tensor:
        flags = []
        for canvas in slots.canvases:
            anchors = canvas.anchors or ()
            flags.append([float(slot in anchors) for slot in range(canvas.length)])
        before = slots.position.double() - slots.position.max() - 1  # entropies are not below 0
        return before.where(slots.of_all(flags) > 0, slots.values.entropy.double())


class Random(Order):
    """A permutation of the slots, drawn once per canvas from ``seed``, the prompt's tokens and the length.

    It does not depend on the batch, the step or the checkpoint: all training runs of a backbone reveal a sentence in
    the same order.
    """

    order: Literal["random"] = "random"
    label = "Random"
    seed: RandomSeed = Field(1, description="of the permutations")

    def scores(self, slots: Slots) -> Tensor:
        return slots.of_all([priorities(self.seed, tuple(canvas.prompt), canvas.length) for canvas in slots.canvases])


@functools.lru_cache(maxsize=4096)  # the canvases of a pass: their next steps ask for the same numbers
def priorities(seed: int, prompt: tuple[int, ...], length: int) -> list[float]:
    """One number in [0, 1) per slot; the lowest is revealed first. Python promises the same numbers everywhere."""
    draw = random.Random(int(files.digest([seed, list(prompt), length]), 16))
    return [draw.random() for _ in range(length)]


ORDERS: dict[str, type[Order]] = {
    kind.model_fields["order"].default: kind
    for kind in (
        MinimumEntropy,
        SigFirst,
        ReverseSig,
        Hybrid,
        EntropyWeightedSig,
        LeftToRight,
        Blocks,
        OracleAnchor,
        Random,
    )
}


# --- The schedule.


def llada(length: int, steps: int) -> list[int]:
    """floor(L/T) slots at each of T steps, one more at the first L mod T (LLaDA's ``get_num_transfer_tokens``)."""
    each, more = divmod(length, steps)
    return [each + 1] * more + [each] * (steps - more)


def floors(length: int, steps: int) -> list[int]:
    """⌊L (t + 1) / T⌋ - ⌊L t / T⌋ slots at step t from 0 (the authors' code)."""
    return [length * (step + 1) // steps - length * step // steps for step in range(steps)]


RULES = {"llada": llada, "floors": floors}


def reveal_counts(length: int, steps: int, rule: str = "llada") -> list[int]:
    """K_t for t = 1 … T; they sum to ``length``. Raises InputError for an unknown rule."""
    if rule not in RULES:
        raise InputError(f"schedule {rule!r}", "unknown", f"Name one of {', '.join(sorted(RULES))}.")
    return RULES[rule](length, steps)
