"""What a reveal order is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from pydantic import Field, model_validator

from entropy_valley import plugins
from entropy_valley.settings import Section

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.entropy import SlotValues
    from entropy_valley.engine.queue import Canvas


@dataclass(frozen=True)
class Slots:
    """The masked slots of all canvases of a pass, canvas by canvas in slot order.

    Per slot: ``canvas`` (index into ``canvases``), ``position`` (from 0), ``values``, and for a :class:`SourceGuided`
    order ``sig``, how much the slot depends on the source (nats, float64; a stepwise one is NaN in canvases whose step
    does not need it); for one that wants anchors it is 1 at these and 0 elsewhere.
    Per canvas: ``step``, how many of its steps that reveal anything are done.
    """

    canvases: Sequence[Canvas]
    canvas: torch.Tensor
    position: torch.Tensor
    step: torch.Tensor
    values: SlotValues
    sig: torch.Tensor | None = None


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
    all-mask canvas (see :mod:`entropy_valley.engine.distractor`). With ``stepwise_kl`` it is KL(p(y_i | source, canvas)
    ‖ p(y_i | no source, canvas)) at each step, the second distribution being that behind the prompt of an empty source;
    this source-free pass runs beside the other wherever :meth:`needs_sourceless` says so.
    """

    sig: Literal["distractor", "stepwise_kl"] = Field(
        "distractor",
        description="the SIG of a slot: the entropy behind a distractor less that behind the source, once; or a "
        "divergence from the source-free distribution at each step, with the formulas of the order that go with it",
    )
    backward: bool = Field(False, description="of stepwise_kl: turn it around, KL(without the source ‖ with it)")

    @model_validator(mode="after")
    def _one_direction(self) -> Self:
        if self.backward and self.sig != "stepwise_kl":
            raise ValueError("`backward` turns a divergence around: it needs `sig: stepwise_kl`")
        return self

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


def sourceless_steps(order: Order, passes: int, steps: int) -> int:
    """How many of the first ``passes`` of ``steps`` steps look at a stepwise SIG: each takes another pass."""
    return sum(needs_sourceless(order, step, steps) for step in range(passes))
