"""The config's blocks of length methods, made from their classes; further blocks set one up in another way."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, create_model

from entropy_valley.experiment.blocks import block, one_of, users
from entropy_valley.lengths import LENGTH_METHODS
from entropy_valley.lengths.select import Reassigned
from entropy_valley.settings import Rate, Section

ELSEWHERE = "in a block of another name: this length method, set up as the block says"
LABEL = Field(None, description="its printed name in tables and figures, for a method of your own")


def _labelled(cls: type[BaseModel], key: str, name: str, description: str | None = None) -> type[Section]:
    """The block of a length method, with its printed name."""
    base = block(cls, key, name, description)
    return create_model(base.__name__, __base__=base, __doc__=base.__doc__, label=(str | None, LABEL))


BLOCKS = {name: _labelled(cls, "selector", name, ELSEWHERE) for name, cls in LENGTH_METHODS.items()}
NAMED, CHECKED = users("length method", "selector", LENGTH_METHODS, _labelled)


class UserMethod(BaseModel):
    """A length method of the user's own. The other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)
    selector: Annotated[str, NAMED] = Field(description="module:Class, or the name of one of ours")
    label: str | None = LABEL


DEALT = {"reassigned": _labelled(Reassigned, "selector", "reassigned")}
Another = one_of("selector", BLOCKS | DEALT, Annotated[UserMethod, CHECKED])


class OtherMethods(BaseModel):
    """How the canvas length is chosen. In a block of another name, ``selector`` says which of these it sets up. It may
    also be a user's own ``module:Class``."""

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
