"""How the canvas length is chosen: a block for each length method, and more blocks that set one up in another way."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt, WrapValidator, create_model

from entropy_valley import plugins
from entropy_valley.canvas.length_methods import LENGTH_METHODS, LengthMethod
from entropy_valley.canvas.reassignment import Reassigned
from entropy_valley.errors import InputError
from entropy_valley.experiment.blocks import block, one_of
from entropy_valley.settings import Rate, Section

ELSEWHERE = "in a block of another name: this length method, set up as the block says"
BLOCKS = {name: block(cls, "selector", name, ELSEWHERE) for name, cls in LENGTH_METHODS.items()}


def _importable(name: str) -> str:
    if not re.fullmatch(r"[\w.]+:\w+", name):
        raise ValueError(f"give module:Class, or one of {', '.join(LENGTH_METHODS)}")
    try:
        plugins.find("length method", LENGTH_METHODS, name)
    except InputError as error:
        raise ValueError(f"{error.problem}. {error.remedy.rstrip('.')}") from None
    return name


class UserMethod(BaseModel):
    """A length method of the user's own; the other keys are handed to it."""

    model_config = ConfigDict(extra="allow", frozen=True)
    selector: Annotated[str, AfterValidator(_importable)] = Field(
        description="module:Class, or the name of one of ours"
    )


def _checked(value: Any, check: Any) -> BaseModel:
    """A user's block; where its class says what it takes, as ours do, as one of ours."""
    plain = check(value)
    cls = plugins.find("length method", LENGTH_METHODS, plain.selector)
    ours = isinstance(cls, type) and issubclass(cls, LengthMethod)
    return block(cls, "selector", plain.selector).model_validate(value) if ours else plain


DEALT = {"reassigned": block(Reassigned, "selector", "reassigned")}
Another = one_of("selector", BLOCKS | DEALT, Annotated[UserMethod, WrapValidator(_checked)])


class OtherMethods(BaseModel):
    """How the canvas length is chosen; any other key names, as ``selector``, one of these or a user's own."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Another]


LengthMethods = create_model(
    "LengthMethods",
    __base__=OtherMethods,
    __doc__=OtherMethods.__doc__,
    **{name: (one | None, None) for name, one in BLOCKS.items()},
)


class LengthStatistics(Section):
    """What methods that are fitted to training pairs measure by all-mask canvases of the first ones of the corpus, a
    random sample. Ratios and the length line count tokens of all pairs."""

    pairs: PositiveInt = Field(1000, description="all-mask canvases at their true length: the entropy expected there")
    bias_pairs: PositiveInt = Field(200, description="pairs probed at each of twelve lengths: CAL's bias curve")


class LengthHeadTraining(Section):
    """How length_head's layer is trained on training pairs, the first of the corpus: a random sample."""

    pairs: PositiveInt = Field(50_000, description="most training pairs")
    epochs: PositiveInt = Field(10, description="passes over them")
    learning_rate: Rate = Field(1.0e-3, description="of Adam, on standardised states")
    batch: PositiveInt = Field(256, description="pairs per step")
    longest: int = Field(256, ge=2, description="slots; pairs with longer targets count as this length")
