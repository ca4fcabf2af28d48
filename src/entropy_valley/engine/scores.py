"""Calls a reveal order and checks what it says of the slots: a user's own may return anything."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch

from entropy_valley import plugins
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley.engine.order import Order, Slots
    from entropy_valley.engine.queue import Canvas


_SCORES = "Return a tensor with one number for each slot, such as slots.values.entropy."


def scored(order: Order, slots: Slots) -> torch.Tensor:
    """What an order says of each slot. A user's own order gets copies, so that it cannot change what the model says.

    Raises InputError for anything else than a tensor of one real number a slot; :func:`not_a_number` is for NaN.
    """
    about = f"sentence {slots.canvases[0].sentence!r} and all in its pass"
    with plugins.calling(order, "scores", about):
        scores = order.scores(_copied(slots) if plugins.is_own(order) else slots)
    if not isinstance(scores, torch.Tensor):
        raise plugins.refused(order, "scores", about, f"returned {plugins.shown(scores)}, no tensor", _SCORES)
    wanted = (tuple(slots.position.shape), slots.position.device)
    if (tuple(scores.shape), scores.device) != wanted or scores.is_complex():
        given = f"returned a tensor of shape {tuple(scores.shape)} on {scores.device}, {scores.dtype}"
        raise plugins.refused(order, "scores", about, f"{given}, for {len(slots.position)} masked slots", _SCORES)
    return scores


def _copied(slots: Slots) -> Slots:
    values = type(slots.values)(*(column.clone() for column in slots.values))
    return dataclasses.replace(slots, values=values, sig=None if slots.sig is None else slots.sig.clone())


def not_a_number(order: Order | None, canvas: Canvas, slot: int, step: int) -> InputError:
    """The error for an order, or without one the model, that gives a slot NaN at a step (both from 0)."""
    if order is None:
        remedy = "Its weights or its adapter are damaged, or diverged in training: fetch or make them again."
        return InputError("model", f"gives NaN for slot {slot} of a canvas of {canvas.length} slots", remedy)
    about = f"sentence {canvas.sentence!r}, canvas of {canvas.length} slots, slot {slot}, step {step}"
    remedy = "Give every masked slot a number. A stepwise SIG is NaN in steps that `needs_sourceless` leaves out."
    return plugins.refused(order, "scores", about, "gives NaN", remedy)
