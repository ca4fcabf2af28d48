"""The key `pages`: what the pages of sentences show, which `snakemake pages` makes."""

from __future__ import annotations

from pydantic import Field

from entropy_valley.settings import Names, Section


class Pages(Section):
    """A page for each direction and test set: every sentence with the outputs of these systems, see docs/results.md."""

    methods: Names | None = Field(
        None, description="length methods under the order and steps of the main tables; null: those of the matrix"
    )
    backbones: Names | None = Field(
        None, description="each with its first seed; null: those of the matrix and of `autoregressive`"
    )
