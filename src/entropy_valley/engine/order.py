"""What a reveal order is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from entropy_valley.settings import Section

if TYPE_CHECKING:
    import torch

    from entropy_valley.engine.entropy import SlotValues
    from entropy_valley.engine.queue import Canvas


@dataclass(frozen=True)
class Slots:
    """The masked slots of all canvases of a pass, canvas by canvas in slot order.

    Per slot: ``canvas`` (index into ``canvases``), ``position`` (from 0), ``values``, and for a :class:`SourceGuided`
    order ``sig``, how much the slot depends on the source (nats, float64; NaN in canvases whose step does not need it).
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
    """An order that asks for the SIG of a slot: KL(p(y_i | source, canvas) ‖ p(y_i | no source, canvas)).

    The second distribution comes from the prompt of an empty source and the same canvas. This source-free pass runs
    beside the other wherever :meth:`needs_sourceless` says so. The paper names the orders and defines neither.
    """

    backward: bool = Field(False, description="turn the divergence around: KL(without the source ‖ with it)")

    def needs_sourceless(self, step: int, steps: int) -> bool:
        """Whether the step (from 0) of ``steps`` looks at the SIG."""
        return True


def needs_sourceless(order: Order | None, step: int, steps: int) -> bool:
    """Whether a step of an order looks at the SIG; an order without the method of that name never does."""
    needs = getattr(order, "needs_sourceless", None)
    return needs is not None and needs(step, steps)


def sourceless_steps(order: Order, passes: int, steps: int) -> int:
    """How many of the first ``passes`` of ``steps`` steps look at the SIG: each takes a source-free pass more."""
    return sum(needs_sourceless(order, step, steps) for step in range(passes))
