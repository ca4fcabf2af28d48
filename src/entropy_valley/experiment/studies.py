"""Comparisons beside the main tables: which systems, on which test sets, and what their table shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from entropy_valley.experiment.directions import Pool
from entropy_valley.settings import AnyNames, Direction, Directions, Name, Names, Numbers, Section

ALL = "all"


class System(Section):
    """A way to decode that is not of the product."""

    method: Name = Field(description="a key of `length_methods`")
    order: Name | None = Field(None, description="null: that of `tables`")
    steps: PositiveInt | None = Field(None, description="null: that of `tables`")


class Study(Section):
    """Systems that are compared with each other: a product of their own, and single ones. Its name is its table's."""

    layout: Name = Field(
        "systems",
        description="systems: a row each; orders: reveal orders and their span; categories: SIG-first against MED by "
        "what a source contains; budgets: rows of T; checks: what stands behind EV's choices; reproduction: beside the "
        "paper's numbers of LLaDA-8B-Base; readings: variants of backbones, a row each",
    )
    backbones: Names | Literal["all"] | None = Field(
        None, description="keys of `backbones`; all: the matrix's; null: that of `tables`"
    )
    directions: Directions | None = Field(
        None, description="of these, those that the matrix has (where it has none, no table); null: the matrix's"
    )
    beyond_matrix: bool = Field(False, description="all of its `directions`, also those that the matrix does not have")
    pools: list[Pool] | None = Field(
        None, description="`pools` of its directions, a training run for each; null: runs with all training pairs"
    )
    seeds: Numbers | Literal["all"] | None = Field(
        None, description="all: those that the matrix gives the backbone; null: the first of them"
    )
    testset: Name | dict[Direction, Name] | None = Field(
        None, description="null: the first of each direction; all: all of each; dev: its development pairs"
    )
    methods: AnyNames | dict[Direction, AnyNames] = Field([], description="keys of `length_methods`")
    orders: Names | None = Field(None, description="null: that of `tables`")
    steps: Numbers | None = Field(None, description="null: that of `tables`")
    others: list[System] = Field([], description="systems beside the product")
    against: Name = Field(
        "ev", description="the method whose lead over each system is tested, under order and T of `tables`"
    )
    figure: bool | Name = Field(
        False, description="of the layout `systems`: draw COMET over passes, too; a name: the file of the figure"
    )
    columns: Names = Field(
        ["comet", "bleu", "closure", "lead", "calls", "passes"],
        description='of the layout `systems`; docs/extending.md, "A comparison", says what each is',
    )

    @model_validator(mode="after")
    def _some_system(self) -> Self:
        if not (self.methods or self.others):
            raise ValueError("compares nothing; give `methods` or `others`")
        return self

    def methods_of(self, direction: str) -> list[str]:
        """The methods of the product in a direction."""
        return self.methods.get(direction, []) if isinstance(self.methods, Mapping) else self.methods

    def testsets_of(self, direction: str, tests: Sequence[str]) -> Sequence[str]:
        """The test sets that it looks at, of a direction that has ``tests``."""
        named = self.testset.get(direction) if isinstance(self.testset, Mapping) else self.testset
        return tests if named == ALL else [named or tests[0]]
