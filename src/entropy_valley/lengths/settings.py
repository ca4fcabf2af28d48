"""The settings of what length methods learn of a backbone, and of what figures show of its all-mask canvases."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from entropy_valley.settings import BY_DIRECTION, AnyNames, Direction, Rate, Ratios, Refers, Section


class LengthStatisticsSection(Section):
    """What CAL measures on all-mask canvases of the first training pairs of the corpus, a random sample."""

    bias_pairs: PositiveInt = Field(200, description="pairs probed at each of twelve lengths: CAL's bias curve")


class LengthHeadTraining(Section):
    """How length_head's layer is trained on training pairs, the first of the corpus: a random sample."""

    pairs: PositiveInt = Field(50_000, description="most training pairs")
    epochs: PositiveInt = Field(10, description="passes over them")
    learning_rate: Rate = Field(1.0e-3, description="of Adam, on standardised states")
    batch: PositiveInt = Field(256, description="pairs per step")
    longest: int = Field(256, ge=2, description="slots; pairs with longer targets count as this length")


class Valley(Section):
    """All-mask canvases of test sentences, around the reference's length and on a dense grid: what figures show of a
    backbone, no length method."""

    backbones: Annotated[AnyNames | None, Refers("backbones")] = Field(
        None, description="of the figure entropy_valley, in the matrix or not; null: those of it; none: no such figure"
    )
    seeds: Annotated[list[int] | None, Refers("matrix.seeds", only_with="backbones")] = Field(
        None, description="the training runs; null: all of a backbone"
    )
    offset: PositiveInt = Field(6, description="slots on either side of the reference's length")
    ratios: Ratios = Field(
        [round(0.40 + 0.05 * step, 2) for step in range(23)], description="the dense grid; a canvas of each, as EV's"
    )
    ratios_of: Annotated[dict[Direction, Ratios], BY_DIRECTION] = Field({}, description="another grid for a direction")
    sentences: PositiveInt = Field(500, description="of each test set, see `corpus.subset`")


class SigConcentration(Section):
    """How much of a sentence's dependence on its source sits in few slots of the canvas of the reference's length."""

    sig: Literal["distractor", "stepwise_kl"] = Field("distractor", description="as `sig` of a reveal order")
