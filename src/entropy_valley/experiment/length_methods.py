"""How the canvas length is chosen: a block for each selector, and more blocks that set one up in another way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, NonNegativeInt, PositiveInt, Tag

from entropy_valley.settings import Direction, Name, Rate, Ratios, Section, Share

ELSEWHERE = Field(None, description="in a block of another name: this selector, set up as the block says")

OneRatio = Annotated[  # told apart by its kind, so that a bad value is one problem and not two
    Annotated[dict[Direction, Rate], Tag("by direction")] | Annotated[Rate, Tag("one")],
    Discriminator(lambda value: "by direction" if isinstance(value, Mapping) else "one"),
]


class Oracle(Section):
    """The reference length: an upper bound, not a method."""

    selector: Literal["oracle"] | None = ELSEWHERE


class Ratio(Section):
    """One corpus ratio per direction."""

    selector: Literal["ratio"] | None = ELSEWHERE
    ratios: OneRatio = Field(description="by direction, or one for all")
    reserve_eos_slot: bool = Field(True, description="one slot more than ratio · |x|, for the EOS; false: none")


class OnGrid(Section):
    ratios: dict[Direction, Ratios] = Field(description="candidate ratios, by direction")


class EntropyValley(OnGrid):
    """EV: the lowest entropy among the candidates of a grid."""

    selector: Literal["ev"] | None = ELSEWHERE
    score: Literal["mean", "sum", "length_normalised", "median"] = Field(
        "mean", description="of the entropies of the first L - 1 slots; length_normalised: mean / log L"
    )


class AdaptiveEntropyValley(OnGrid):
    """EV whose window grows while the valley lies at its edge."""

    selector: Literal["adaptive_ev"] | None = ELSEWHERE
    extensions: NonNegativeInt = Field(3, description="most ratio steps on a side")


class SmartCropStyle(OnGrid):
    """One probe of a generous canvas, cropped where p(EOS) rises."""

    selector: Literal["smartcrop_style"] | None = ELSEWHERE
    stretch: Rate = Field(1.5, description="the canvas has this times the largest ratio")
    quantile: Share = Field(0.9, description="of the sentence's p(EOS); the first slot that reaches it ends the canvas")


class LengthRegularisedStyle(OnGrid):
    """Confidence corrected for its trend in the length."""

    selector: Literal["lr_style"] | None = ELSEWHERE


class CalibratedConfidence(Section):
    """CAL: a climb from the canvas of Fixed Ratio."""

    selector: Literal["cal"] | None = ELSEWHERE
    ratios: dict[Direction, Rate] = Field(description="where the climb starts, by direction")
    patience: PositiveInt = Field(2, description="a side stops after so many slots in a row without improvement")
    reach: PositiveInt = Field(32, description="most slots on a side")


class CalibratedEntropyValley(OnGrid):
    """EV's mean entropy over the entropy that is usual at that length."""

    selector: Literal["ev_calibrated"] | None = ELSEWHERE


class PriorEntropyValley(Section):
    """EV over every length, with a prior on the canvas ratio."""

    selector: Literal["ev_prior"] | None = ELSEWHERE
    weight: float = Field(0.1, ge=0, allow_inf_nan=False, description="λ of mean entropy + λ·z²/2")
    window: Rate = Field(3.0, description="candidates have |z| at most this")


class LineEntropyValley(Section):
    """EV over the lengths nearest to the line of expected ones, with a prior about it."""

    selector: Literal["ev_line"] | None = ELSEWHERE
    candidates: PositiveInt = Field(7, description="lengths that are probed")
    weight: float = Field(0.1, ge=0, allow_inf_nan=False, description="λ of mean entropy + λ·(z − shift)²/2")
    shift: float = Field(1.0, allow_inf_nan=False, description="of the prior's centre, in standard deviations")


class LengthLine(Section):
    """The expected length by itself: no probe."""

    selector: Literal["length_line"] | None = ELSEWHERE


class Neighbours(OnGrid):
    """EV's choice and its neighbours, all decoded."""

    selector: Literal["neighbours"] | None = ELSEWHERE
    radius: PositiveInt = Field(2, description="slots on either side")


class RerankedEntropyValley(OnGrid):
    """The candidates of lowest entropy on EV's grid, all decoded."""

    selector: Literal["ev_rerank"] | None = ELSEWHERE
    k: PositiveInt = Field(2, description="how many are decoded")


class LengthHead(Section):
    """The lengths that a layer on the prompt's states predicts."""

    selector: Literal["length_head"] | None = ELSEWHERE
    beam: PositiveInt = Field(1, le=32, description="how many of the likeliest are decoded")


class Daedal(Section):
    """The first stage of DAEDAL: the canvas grows until the model expects the EOS at its end."""

    selector: Literal["daedal"] | None = ELSEWHERE
    ratios: dict[Direction, Rate] | None = Field(None, description="where it starts, by direction; or give `start`")
    start: PositiveInt | None = Field(None, description="slots that it starts with, whatever the source")
    eos_window: PositiveInt = Field(32, description="E: slots that the EOS confidence is a mean over")
    expansion_threshold: Share = Field(0.5, description="below this EOS confidence the canvas grows")
    step: PositiveInt = Field(8, description="slots that it grows by")
    cap: PositiveInt = Field(2048, description="most slots; the backbone's context may leave fewer")


class Reassigned(Section):
    """Another method's canvas ratios, dealt to other sentences: a control, which probes nothing."""

    selector: Literal["reassigned"] = Field(description="names this control")
    of: Name = Field("ev", description="the method whose ratios L/|x| are permuted")
    seed: PositiveInt = Field(description="of the permutation")
    within: Literal["all", "deciles"] = Field(
        "all", description="deciles: only between sentences of the same decile of source length"
    )


def _importable(name: str) -> str:
    if not re.fullmatch(r"[\w.]+:\w+", name):
        raise ValueError(f"give module:Class, or one of {', '.join(LengthMethods.model_fields)}")
    return name


class UserMethod(BaseModel):
    """A selector of the user's own; the other keys are handed to it."""

    model_config = ConfigDict(extra="allow", frozen=True)
    selector: Annotated[str, AfterValidator(_importable)] = Field(
        description="module:Class, or the name of one of ours"
    )


def _kind(block: Any) -> str:
    named = block.get("selector") if isinstance(block, Mapping) else getattr(block, "selector", None)
    known = isinstance(named, str) and (named in LengthMethods.model_fields or named == "reassigned")
    return named if known else "user"


Another = Annotated[
    Annotated[Oracle, Tag("oracle")]
    | Annotated[Ratio, Tag("ratio")]
    | Annotated[EntropyValley, Tag("ev")]
    | Annotated[AdaptiveEntropyValley, Tag("adaptive_ev")]
    | Annotated[SmartCropStyle, Tag("smartcrop_style")]
    | Annotated[LengthRegularisedStyle, Tag("lr_style")]
    | Annotated[CalibratedConfidence, Tag("cal")]
    | Annotated[CalibratedEntropyValley, Tag("ev_calibrated")]
    | Annotated[PriorEntropyValley, Tag("ev_prior")]
    | Annotated[LineEntropyValley, Tag("ev_line")]
    | Annotated[LengthLine, Tag("length_line")]
    | Annotated[Neighbours, Tag("neighbours")]
    | Annotated[RerankedEntropyValley, Tag("ev_rerank")]
    | Annotated[LengthHead, Tag("length_head")]
    | Annotated[Daedal, Tag("daedal")]
    | Annotated[Reassigned, Tag("reassigned")]
    | Annotated[UserMethod, Tag("user")],
    Discriminator(_kind),
]


class LengthMethods(BaseModel):
    """How the canvas length is chosen; any other key names, as ``selector``, one of these or a user's own."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Another]

    oracle: Oracle | None = None
    ratio: Ratio | None = None
    ev: EntropyValley | None = None
    adaptive_ev: AdaptiveEntropyValley | None = None
    smartcrop_style: SmartCropStyle | None = None
    lr_style: LengthRegularisedStyle | None = None
    cal: CalibratedConfidence | None = None
    ev_calibrated: CalibratedEntropyValley | None = None
    ev_prior: PriorEntropyValley | None = None
    ev_line: LineEntropyValley | None = None
    length_line: LengthLine | None = None
    neighbours: Neighbours | None = None
    ev_rerank: RerankedEntropyValley | None = None
    length_head: LengthHead | None = None
    daedal: Daedal | None = None


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
