"""What EV's probes cost in calls and in seconds, and what the stages of the workflow took."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.config import matrix
from entropy_valley.config.matrix import sets_of
from entropy_valley.config.methods import grid
from entropy_valley.stats.job_costs import gpus, stage_hours
from entropy_valley.stats.paper_numbers import Published, find
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.of_results import costs
from entropy_valley.tables.reader import Results, diagnostics_file
from entropy_valley.tables.render import Column, Group, Table, TableSection
from entropy_valley.tables.systems import TIMED

BUDGETS = (32, 64, 128)  # the paper's
PLACE = "sec:appendix_repro"
FIELDS = ["part", "direction", "testset", "item", "here", "paper"]
CostRow = tuple[str, str, str, str, float, str | None]  # its values
SHARES = (
    "Probes: all-mask passes of EV per sentence, over the T steps that follow. At most: one for each of EV's ratios. "
    "Two ratios of a short source can give the same length, which takes one probe."
)
HOURS = (
    "Hours of finished jobs, as if one ran after the other, from results/benchmarks. GPU-hours: these times the GPUs "
    "that a job held. Attempts that failed are not counted. Of an interrupted training, only the last attempt is. "
    "Downloads, tables and figures are not counted."
)


class Cost(TableReport):
    """Three sections: the share of the probes at each T, measured latencies, and hours by stage."""

    caption = (
        "Cost: the share of Entropy-Valley's probes in the passes, measured seconds per sentence, and the hours that "
        "the finished jobs of each stage took, beside the paper's."
    )

    recorded = ("candidates",)

    @functools.cached_property
    def cells(self) -> list[matrix.Cell]:
        """EV's of the main table."""
        return [cell for cell in self.main_cells if cell.method == "ev"]

    @functools.cached_property
    def candidates(self) -> dict[str, int]:
        """The number of EV's ratios by direction."""
        directions = dict.fromkeys(cell.direction for cell in self.cells)
        return {name: len(grid(self.experiment, "ev", name)) for name in directions}

    @functools.cached_property
    def timed(self) -> list[matrix.Cell]:
        """The cells of studies that ask for latencies."""
        experiment = self.experiment
        studies = (name for name in experiment.tables.studies if TIMED.keys() & set(experiment.studies[name].columns))
        return list(dict.fromkeys(cell for name in studies for cell in matrix.study_cells(experiment, name)))

    @functools.cached_property
    def shown(self) -> list[matrix.Cell]:
        """Those of them that are EV's or Ratio's of the main backbone; of a test set and method the last one."""
        tables = self.experiment.tables
        main = (tables.backbone, tables.order, tables.steps)
        cells = [cell for cell in self.timed if (cell.backbone, cell.order, cell.steps) == main]
        shown = (cell for cell in cells if cell.method in ("ratio", "ev"))
        return list({(cell.direction, cell.testset, cell.method): cell for cell in shown}.values())

    def inputs(self) -> list[str]:
        """Also what the other jobs with a benchmark file write: scores, latencies, diagnostics. Then all have run."""
        experiment, root = self.experiment, self.experiment.results
        scores = (one.scores(root) for one in sets_of(experiment).all)
        latencies = (cell.latency(root) for cell in self.timed)
        runs = {cell.run: cell for cell in matrix.all_cells(experiment)}
        diagnosed = [diagnostics_file(root, cell) for run, cell in runs.items() if sets_of(experiment).diagnostics(run)]
        return [*super().inputs(), *scores, *latencies, *diagnosed]

    def made(self, results: Results) -> tuple[Table, pd.DataFrame]:
        numbers = self.numbers(results)
        return self.table(results, numbers), numbers

    def numbers(self, results: Results) -> pd.DataFrame:
        """Columns: FIELDS; ``paper`` is a number as printed, where it has one."""
        rows = [*self._shares(results), *self._latencies(results), *self._hours(results)]
        return pd.DataFrame(rows, columns=FIELDS)

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        sections = []
        for part, rows in numbers.groupby("part", sort=False):
            heading, text = PARTS[str(part)]
            groups = []
            for row in rows.to_dict("records"):
                paper = formats.NONE if pd.isna(row["paper"]) else row["paper"]
                groups.append(Group.of(self._described(row), (text(row["here"]), paper)))
            sections.append(TableSection(groups, heading))
        columns = (Column("What", align="l"), Column("Here", align="r"), Column("Paper", align="r"))
        timing = notes.timing([results.latency(cell) for cell in self.shown])
        return Table(columns, sections, (SHARES, *timing, HOURS, notes.sentences(self, results)))

    def _described(self, row: Mapping[str, Any]) -> str:
        item = self.method(row["item"]).short if row["part"] in TIMED else row["item"]
        place = row["direction"] and self.place(row["direction"], row["testset"])
        return ", ".join(part for part in (place, item) if part)

    def _shares(self, results: Results) -> Iterator[CostRow]:
        means = costs(results, self.cells)
        for budget in BUDGETS:
            item, paper = f"T = {budget}", _printed(find(PLACE, "probe_share", setting=f"T={budget}", system="ev"))
            for row in means.itertuples(index=False):
                place, most = (row.direction, row.testset), self.candidates[row.direction]
                yield "probe_share", *place, item, (row.calls - row.steps) / budget, None
                yield "probe_cap", *place, item, most / budget, paper

    def _latencies(self, results: Results) -> Iterator[CostRow]:
        for part, kind in TIMED.items():
            for cell in self.shown:
                named = {"direction": cell.direction, "system": cell.method}
                printed = find(PLACE, "latency_batch16", **named) if part != "latency" else None
                seconds = results.latency(cell)[kind]["seconds_per_sentence"]
                yield part, cell.direction, cell.testset, cell.method, seconds, _printed(printed)

    def _hours(self, results: Results) -> Iterator[CostRow]:
        held = gpus(self.experiment.device, self.experiment.training.processes)
        stages = stage_hours(Path(results.root, "benchmarks"), held)
        for part, paper in (("hours", None), ("gpu_hours", find(PLACE, "gpu_hours"))):
            for stage, hours in stages.loc[stages[part] > 0, ["stage", part]].itertuples(index=False):
                yield part, "", "", stage, hours, None
            yield part, "", "", "all", stages[part].sum(), _printed(paper)


PARTS = {
    "probe_share": ("Probes, share of the steps", formats.percent),
    "probe_cap": ("Probes at most, share of the steps", formats.percent),
    "latency": ("Seconds per sentence, one at a time", lambda value: formats.number(value, 4)),
    "latency_batched": ("Seconds per sentence, batched", lambda value: formats.number(value, 4)),
    "hours": ("Hours by stage", lambda value: formats.number(value, 2)),
    "gpu_hours": ("GPU-hours by stage", lambda value: formats.number(value, 2)),
}
"""Heading and format of each part."""


def _printed(number: Published | None) -> str | None:
    return number.text if number else None
