"""The table of the sentences on which EV scores below the fixed ratio, by likely cause."""

from __future__ import annotations

from typing import Any

from entropy_valley.analysis.coverage import PLACE, RIVALS, CoverageParams
from entropy_valley.analysis.failure_buckets import ALL, OVERSHOOT, SHORT, SHORTEST, UNDER, WITHIN, failure_buckets
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats
from entropy_valley.reporting.labels import method
from entropy_valley.reporting.reports.coverage import OfEvAndRatio
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

LABELS = {
    SHORT: "Very short source",
    OVERSHOOT: "Overshoot beyond grid",
    UNDER: "Under-compression",
    WITHIN: "Within-grid wrong pick",
    ALL: "All losses",
}
RULES = Note(
    f"The first rule that fits. Very short source: at most {SHORTEST} tokens. Overshoot: the reference's canvas (its "
    "tokens and the EOS) is below EV's smallest candidate. Under-compression: above its largest. Else within the grid."
)


class FailureBuckets(OfEvAndRatio):
    """A section for each direction; beside the paper's Ratio that with the slot for the EOS."""

    caption = (
        "Sentences on which EV scores below the fixed ratio in {metric}, by likely cause: how many, which share of "
        "all such sentences, and by how much EV scores less."
    )

    def numbers(self, params: CoverageParams) -> pd.DataFrame:
        return failure_buckets(params)

    def table(self, params: CoverageParams, numbers: pd.DataFrame) -> Table:
        means = numbers[numbers["statistic"] == "mean"]
        rivals = [name for name in RIVALS if name in set(means["rival"])]
        sections = [
            _section(params, rows, f"{params.place(*place)}, N = {rows['sentences'].iloc[0]:.0f}")
            for place, rows in means.groupby(list(PLACE), sort=False)
        ]
        titles = ("Losses", "Share", f"Mean Δ {params.metric.label}")
        over = (Column(title, f"against {method(name).short}") for name in rivals for title in titles)
        cell, runs = params.cells[0], means["runs"].max()
        setting = f"{params.label('backbones', cell.backbone)}; reveal order {cell.order}, T = {cell.steps}; "
        counted = f"means over {runs} runs, each run by itself is in the CSV." if runs > 1 else "one run."
        return Table((Column("Likely cause", align="l"), *over), tuple(sections), (Note(setting + counted), RULES))


def _section(params: CoverageParams, rows: pd.DataFrame, heading: str) -> Section:
    groups = []
    for cause, part in rows.groupby("cause", sort=False):
        cells = [text for row in part.itertuples(index=False) for text in _texts(params, row)]
        groups.append(Group(LABELS[str(cause)], (Row(tuple(Cell(text, bold=cause == ALL) for text in cells)),)))
    return Section(tuple(groups), heading)


def _texts(params: CoverageParams, row: Any) -> list[str]:
    """Losses, share and mean difference; a mean over runs of whole numbers has a decimal."""
    count = f"{row.losses:.{int(row.runs > 1)}f}"
    if not row.losses:
        return [count, formats.NONE, formats.NONE]
    return [count, formats.percent(row.share, float("nan")), formats.signed(row.delta, params.metric.decimals)]
