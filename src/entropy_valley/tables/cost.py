"""What EV's probes cost in calls and in seconds, and what the stages of the workflow took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.config import Experiment, matrix
from entropy_valley.config.matrix import sets_of
from entropy_valley.config.methods import method_settings
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import costs
from entropy_valley.stats.job_costs import gpus, stage_hours
from entropy_valley.stats.paper_numbers import Published, find
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport, diagnostics_files
from entropy_valley.tables.labels import method
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection
from entropy_valley.tables.systems import TIMED

BUDGETS = (32, 64, 128)  # the paper's
PLACE = "sec:appendix_repro"
KEY = ["part", "direction", "item"]
SHARES = Note(
    "Probes: all-mask passes of EV a sentence, over the T steps that follow. Cap: as many as EV has ratios; two ratios "
    "of a short source give one length, and its canvas one probe."
)
HOURS = Note(
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

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        """EV's of the main table."""
        main = matrix.table_cells(experiment, experiment.tables.backbone)
        return [cell for cell in main if cell.method == "ev"]

    def inputs(self, experiment: Experiment) -> list[str]:
        """Also what the other jobs with a benchmark file write: scores, latencies, diagnostics. Then all have run."""
        scores = (one.scores(experiment.results) for one in sets_of(experiment).all)
        return [*super().inputs(experiment), *scores, *_unscored(experiment)]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        directions = dict.fromkeys(cell.run.direction for cell in cells)
        grids = {name: method_settings(experiment, "ev", name).get("ratios", []) for name in directions}
        return {
            "candidates": {name: len(grid) for name, grid in grids.items()},
            "timed": _timed(experiment),
            "benchmarks": f"{experiment.results}/benchmarks",
            "gpus": gpus(experiment.device, experiment.training.processes),
        }

    def made(self, params: Params) -> tuple[Table, pd.DataFrame]:  # type: ignore[override]
        numbers = self.numbers(params)
        return self.table(params, numbers), numbers

    def numbers(self, params: Params) -> pd.DataFrame:
        """Columns: KEY, ``here``, and ``paper``, a number as printed, where it has one."""
        rows = [*_shares(params), *_latencies(params), *_hours(params)]
        return pd.DataFrame(rows, columns=[*KEY, "here", "paper"])

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        sections = []
        for part, rows in numbers.groupby("part", sort=False):
            groups = (Group(_described(params, row), (TableRow(_cells(row)),)) for row in rows.to_dict("records"))
            sections.append(TableSection(tuple(groups), PARTS[str(part)][0]))
        columns = (Column("What", align="l"), Column("Here", align="r"), Column("Paper", align="r"))
        timing = notes.timing_of([files.read_json(path) for _, _, path in params["timed"]])
        return Table(columns, tuple(sections), (SHARES, *timing, HOURS, notes.sentences(params)))


PARTS = {
    "probe_share": ("Probes, share of the steps", lambda value: formats.percent(value, float("nan"))),
    "probe_cap": ("Probes at most, share of the steps", lambda value: formats.percent(value, float("nan"))),
    "latency": ("Seconds a sentence, one at a time", lambda value: formats.number(value, 4)),
    "latency_batched": ("Seconds a sentence, batched", lambda value: formats.number(value, 4)),
    "hours": ("Hours by stage", lambda value: formats.number(value, 2)),
    "gpu_hours": ("GPU-hours by stage", lambda value: formats.number(value, 2)),
}
"""Heading and format of each part."""


def _unscored(experiment: Experiment) -> list[str]:
    """The latencies that studies ask for, and the diagnostics of runs: scores are not made from these."""
    studies = (name for name in experiment.tables.studies if TIMED.keys() & set(experiment.studies[name].columns))
    timed = (cell.latency(experiment.results) for name in studies for cell in matrix.study_cells(experiment, name))
    one_of = {cell.run: cell for cell in matrix.all_cells(experiment)}
    diagnosed = [cell for run, cell in one_of.items() if sets_of(experiment).diagnostics(run)]
    return list(dict.fromkeys([*timed, *diagnostics_files(experiment, diagnosed)]))


def _timed(experiment: Experiment) -> list[tuple[str, str, str]]:
    """Direction, method and file of the latencies that studies ask for, of the main backbone's EV and Ratio."""
    files_of = {}
    for name in experiment.tables.studies:
        if TIMED.keys() & set(experiment.studies[name].columns):
            for cell in matrix.study_cells(experiment, name):
                main = (experiment.tables.backbone, experiment.tables.order, experiment.tables.steps)
                if cell.method in ("ratio", "ev") and (cell.run.backbone, cell.order, cell.steps) == main:
                    files_of[cell.run.direction, cell.method] = cell.latency(experiment.results)
    return [(*key, path) for key, path in files_of.items()]


def _shares(params: Params) -> Iterator[dict[str, Any]]:
    means = costs(params.cells)
    for budget in BUDGETS:
        paper = _printed(find(PLACE, "probe_share", setting=f"T={budget}", system="ev"))
        for row in means.itertuples(index=False):
            share = {"direction": row.direction, "item": f"T = {budget}"}
            yield {"part": "probe_share", **share, "here": (row.calls - row.steps) / budget}
            yield {"part": "probe_cap", **share, "here": params["candidates"][row.direction] / budget, "paper": paper}


def _latencies(params: Params) -> Iterator[dict[str, Any]]:
    for part, kind in TIMED.items():
        for direction, name, path in params["timed"]:
            printed = find(PLACE, "latency_batch16", direction=direction, system=name) if part != "latency" else None
            seconds = files.read_json(path)[kind]["seconds_per_sentence"]
            yield {"part": part, "direction": direction, "item": name, "here": seconds, "paper": _printed(printed)}


def _hours(params: Params) -> Iterator[dict[str, Any]]:
    stages = stage_hours(Path(params["benchmarks"]), params["gpus"])
    for part, paper in (("hours", None), ("gpu_hours", find(PLACE, "gpu_hours"))):
        for row in stages[stages[part] > 0].itertuples(index=False):
            yield {"part": part, "direction": "", "item": row.stage, "here": getattr(row, part)}
        yield {"part": part, "direction": "", "item": "all", "here": stages[part].sum(), "paper": _printed(paper)}


def _printed(number: Published | None) -> str | None:
    return number.text if number else None


def _described(params: Params, row: Mapping[str, Any]) -> str:
    item = method(row["item"]).short if row["part"] in TIMED else row["item"]
    return ", ".join(part for part in (params.label("directions", row["direction"]), item) if part)


def _cells(row: Mapping[str, Any]) -> tuple[TableCell, TableCell]:
    return TableCell(PARTS[row["part"]][1](row["here"])), TableCell(
        formats.NONE if pd.isna(row["paper"]) else row["paper"]
    )
