"""The key `paper_comparison`: what a config's results are, seen from the paper's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from entropy_valley.settings import Name, Section


class PaperComparison(Section):
    """The table of the paper's numbers beside ours."""

    compare: Literal["values", "signs"] | None = Field(
        "values",
        description="signs: other models, data or metrics, so only signs of differences and orders of systems can be "
        "compared; null: no such table",
    )
    names: dict[Name, Name] = Field(
        {},
        description="what stands here for backbones, sources and pools of the paper's config: {llada-8b: llada-tiny}",
    )
