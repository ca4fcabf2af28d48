"""The settings of the human evaluation."""

from typing import Annotated

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from entropy_valley.settings import Direction, Name, RandomSeed, Refers, Runtime, Section, unique
from entropy_valley.translation.settings import SystemSection

POOLED = "all"  # in the place of an annotator: all of them together


def _as_files(names: list[str]) -> list[str]:
    """Their files are also different ones where capital letters make no difference, as on macOS."""
    unique([name.lower() for name in names])
    if everyone := [name for name in names if name.lower() == POOLED]:
        raise ValueError(f"{everyone[0]} stands for all of them together; choose another name")
    return names


Annotator = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=50)]  # names files
Annotators = Annotated[list[Annotator], Field(min_length=1), AfterValidator(_as_files)]


class Shown(SystemSection):
    """One of the two systems that annotators compare."""

    backbone: Annotated[Name | None, Refers("backbones")] = Field(None, description="null: that of `tables`")
    seed: PositiveInt | None = Field(None, description="the training run; null: the first of the backbone")


class Buckets(Section):
    """Sentences of a pack, by why they are in it. The scores are those of the main metric in the run that is shown."""

    first_best: NonNegativeInt = Field(25, description="the first system leads most")
    second_best: NonNegativeInt = Field(25, description="the second system leads most")
    tied: NonNegativeInt = Field(25, description="the smallest differences that are not zero")
    random: NonNegativeInt = Field(25, description="drawn of the others by a keyed hash")


class HumanEvaluation(Section):
    """Packs for annotators, and the tables of their filled forms. docs/human_evaluation.md."""

    directions: Annotated[list[Direction], AfterValidator(unique)] = Field(
        [], description="of these, those that the matrix has; none: no packs"
    )
    testset: Annotated[Name | None, Refers("sources")] = Field(None, description="null: the first of each direction")
    first: Shown = Field(Shown(method="ev"), description="differences are of this system …")
    second: Shown = Field(Shown(method="ratio"), description="… minus this one")
    sentences: Buckets = Buckets()
    seed: RandomSeed = Field(1, description="of the random sentences, the order of rows, and the system in each slot")
    annotators: Annotators = Field(["A", "B", "C"], description="each gets forms under this name")
    forms: Runtime[str] = Field(
        "human_evaluation", description="the folder of filled forms: a folder for each direction, in it A.xlsx or A.csv"
    )
    simulated: bool = Field(
        False, description="instead of filled forms, those of simulated annotators: to try the whole way"
    )
