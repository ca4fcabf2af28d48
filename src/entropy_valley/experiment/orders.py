"""Reveal orders under names of the config's own, and what may be wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from entropy_valley.decoding.denoising import KNOWN, Denoising
from entropy_valley.errors import InputError
from entropy_valley.settings import Plugin


class RevealOrder(BaseModel):
    """A reveal order, one of ours or a user's own ``module:Class``; the other keys are handed to it."""

    model_config = ConfigDict(extra="allow", frozen=True)
    order: Plugin = Field(description="one of ours, of orders or of fillings that change the canvas, or module:Class")


def order_problems(blocks: Mapping[str, Any], asked: Sequence[Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path, message) of each block and of each asked name that makes no order."""
    for name, section in blocks.items():
        settings = dict(section) if isinstance(section, Mapping) else {}
        order = settings.pop("order", None)
        if name in KNOWN and order != name:
            yield ("reveal_orders", name), f"an order of ours has the name {name!r}; give the block another one"
        elif isinstance(order, str) and (problem := _refused(order, settings)):
            yield ("reveal_orders", name), problem
    for name in asked:
        if name not in KNOWN and name not in blocks:
            there = ", ".join(dict.fromkeys([*KNOWN, *blocks]))
            yield ("matrix", "orders"), f"{name!r} is no reveal order; there is {there}"
        elif name not in blocks and (problem := _refused(name, {})):
            yield ("matrix", "orders"), f"{problem} Name a block of `reveal_orders` that says so."


def _refused(order: str, settings: Mapping[str, Any]) -> str | None:
    try:
        Denoising.named(order, 1, "llada", settings)
    except InputError as error:
        return str(error)
    return None
