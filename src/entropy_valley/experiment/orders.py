"""The config's blocks of reveal orders and variable-length decoders, made from their classes, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WrapValidator

from entropy_valley.decoding.orders import KNOWN, make_denoiser
from entropy_valley.errors import refusal
from entropy_valley.experiment.blocks import block, one_of, users
from entropy_valley.spelling import unknown

NAMED, CHECKED = users("reveal order", "order", KNOWN)


class UserOrder(BaseModel):
    """A reveal order or a variable-length decoder of the user's own. The other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)
    order: Annotated[str, NAMED] = Field(description="module:Class, or the name of one of ours")


def _as_said(value: Mapping[str, Any], check: Callable[[Any], BaseModel]) -> UserOrder:
    """The checked block as the config has it, without defaults: the store identifies results by these settings."""
    check(value)
    settings = {key: setting for key, setting in value.items() if key != "order"}
    if problem := refusal(make_denoiser, value["order"], settings):
        raise ValueError(problem)
    return UserOrder.model_construct(**value)


BLOCKS = {name: block(cls, "order", name, title=f"{cls.__name__}Order") for name, cls in KNOWN.items()}
RevealOrder = Annotated[one_of("order", BLOCKS, Annotated[UserOrder, CHECKED]), WrapValidator(_as_said)]


def order_problems(blocks: Mapping[str, Any], asked: Sequence[Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path, message) of each block that has a name of ours, and of each asked name that makes no order."""
    for name, section in blocks.items():
        if name in KNOWN and isinstance(section, Mapping) and section.get("order") != name:
            yield ("reveal_orders", name), f"an order of ours has the name {name!r}; give the block another one"
    for name in asked:
        if name not in KNOWN and name not in blocks:
            yield ("matrix", "orders"), unknown(name, f"{name!r} is no reveal order", [*KNOWN, *blocks], most=40)
        elif name not in blocks and (problem := refusal(make_denoiser, name, {})):
            yield ("matrix", "orders"), f"{name}: {problem}. Name a block of `reveal_orders` that has its settings"
