"""Calls a reveal order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from entropy_valley import plugins
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley.engine.order import Order, Slots
    from entropy_valley.engine.queue import Canvas


def scored(order: Order, slots: Slots) -> torch.Tensor:
    """What an order says of each slot. Raises InputError for anything else than a tensor of one number a slot;
    :func:`not_a_number` is for NaN."""
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
