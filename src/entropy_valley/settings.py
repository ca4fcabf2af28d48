"""The base class of all blocks of the config, and the types of their values."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt


class Section(BaseModel):
    """A block of the config: no unknown keys, no changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ByDirection:
    """Marks a setting that the config may give by direction; its class sees that of one direction."""


T = TypeVar("T")
PerDirection = Annotated[T, ByDirection()]


def unique(values: list[Any]) -> list[Any]:
    repeated = sorted({str(value) for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"repeats {', '.join(repeated)}; name each once")
    return values


def _ascending(limits: tuple[int, int]) -> tuple[int, int]:
    if limits[0] > limits[1]:
        raise ValueError("the first limit is the lower one")
    return limits


def _template(text: str) -> str:
    if text.count("{src}") != 1:
        raise ValueError("must name the source exactly once, as {src}")
    return text


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.]*(-[a-z0-9_.]+)*$")]
Direction = Annotated[str, Field(pattern=r"^[a-z]{2}-[a-z]{2}$")]
Plugin = Annotated[str, Field(pattern=r"^([a-z0-9_.-]+|[\w.]+:\w+)$")]  # one of ours, or module:name
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]  # a branch would be another checkpoint tomorrow
Names = Annotated[list[Name], Field(min_length=1), AfterValidator(unique)]
Directions = Annotated[list[Direction], Field(min_length=1), AfterValidator(unique)]
Numbers = Annotated[list[PositiveInt], Field(min_length=1), AfterValidator(unique)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limits = Annotated[tuple[PositiveInt, PositiveInt], AfterValidator(_ascending)]
Ratios = Annotated[list[Rate], Field(min_length=1), AfterValidator(unique)]
Template = Annotated[str, AfterValidator(_template)]
AnyNames = Annotated[list[Name], AfterValidator(unique)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
