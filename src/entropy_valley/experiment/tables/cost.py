"""What EV's probes cost in calls and in seconds, and what the stages of the workflow took."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.experiment.config import Experiment, matrix
from entropy_valley.experiment.config.matrix import Cell, sets_of
from entropy_valley.experiment.config.methods import grid
from entropy_valley.experiment.stats.job_costs import gpus, stage_hours
from entropy_valley.experiment.stats.paper_numbers import Published, find
from entropy_valley.experiment.stats.summary import costs
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.report import Data, Names, Row, Shown, aligned, table
from entropy_valley.experiment.tables.scores import main_cells
from entropy_valley.experiment.tables.systems import TIMED
from entropy_valley.results import DIAGNOSTICS

BUDGETS = (32, 64, 128)  # the paper's
PLACE = "sec:appendix_repro"
FIELDS = ["part", "direction", "testset", "item", "here", "paper"]
SHARES = (
    "Probes: all-mask passes of EV per sentence, over the T steps that follow. At most: one for each of EV's ratios. "
    "Two ratios of a short source can give the same length, which takes one probe."
)
HOURS = (
    "Hours of finished jobs, as if one ran after the other, from results/benchmarks. GPU-hours: these times the GPUs "
    "that a job held. Attempts that failed are not counted. Of an interrupted training, only the last attempt is. "
    "Downloads, tables and figures are not counted."
)


# Heading and decimals of each part; a share has none.
PARTS = {
    "probe_share": ("Probes, share of the steps", None),
    "probe_cap": ("Probes at most, share of the steps", None),
    "latency": ("Seconds per sentence, one at a time", 4),
    "latency_batched": ("Seconds per sentence, batched", 4),
    "hours": ("Hours by stage", 2),
    "gpu_hours": ("GPU-hours by stage", 2),
}


def ev_cells(experiment: Experiment) -> list[Cell]:
    """EV's of the main table."""
    return [cell for cell in main_cells(experiment) if cell.method == "ev"]


def timed_cells(experiment: Experiment) -> list[Cell]:
    """The cells of studies that ask for latencies."""
    cells: list[Cell] = []
    for name in experiment.tables.studies:
        # Only these studies have latency jobs.
        if TIMED.keys() & {*experiment.studies[name].columns}:
            cells += matrix.study_cells(experiment, name)
    return list(dict.fromkeys(cells))


def shown_latencies(experiment: Experiment) -> list[Cell]:
    """Those of them that are EV's or Ratio's of the main backbone; of a test set and method the last one."""
    tables = experiment.tables
    main = (tables.backbone, tables.order, tables.steps)
    shown = {}
    # A later study of the same method and test set replaces an earlier one.
    for cell in timed_cells(experiment):
        if (cell.backbone, cell.order, cell.steps) == main and cell.method in ("ratio", "ev"):
            shown[cell.direction, cell.testset, cell.method] = cell
    return list(shown.values())


def benchmarked(names: Names) -> Iterator[str]:
    """What the other jobs with a benchmark file write: scores, latencies, diagnostics. Then all have run."""
    # The hours are those of finished jobs, so the table waits for them.
    experiment, root = names.experiment, names.experiment.results
    yield from (one.scores(root) for one in sets_of(experiment).all)
    yield from (cell.latency(root) for cell in timed_cells(experiment))
    yield from (f"{run.folder(root)}/{DIAGNOSTICS}" for run in sets_of(experiment).diagnostics)


@table(
    "Cost: the share of Entropy-Valley's probes in the passes, measured seconds per sentence, and the hours that the "
    "finished jobs of each stage took, beside the paper's.",
    ev_cells,
    files=benchmarked,
    signed=False,
)
def cost(data: Data) -> Shown:
    """Three sections: the share of the probes at each T, measured latencies, and hours by stage. ``paper`` is a number
    as printed, where it has one."""
    timed = {cell: data.files.latency(cell) for cell in shown_latencies(data.experiment)}
    numbers, rows = cost_numbers(data, timed), []
    for part, rows_of in numbers.groupby("part", sort=False):
        title, decimals = PARTS[part]
        for row in rows_of.itertuples():
            item = data.method(row.item).short if part in TIMED else row.item
            # Hours are of all directions together.
            label = f"{data.place(row.direction, row.testset)}, {item}" if row.direction else item
            here = formats.number(row.here, decimals) if decimals else formats.percent(row.here)
            rows.append(Row([label, here, formats.NONE if pd.isna(row.paper) else row.paper], title))
    columns = aligned("l", "What") + aligned("r", "Here", "Paper")
    notes = [SHARES, *footnotes.timing([*timed.values()]), HOURS, footnotes.sentences(data)]
    return Shown(numbers, columns, rows, notes)


def cost_numbers(data: Data, timed: Mapping[Cell, Mapping[str, Any]]) -> pd.DataFrame:
    """The tidy numbers, :data:`FIELDS`; ``timed`` has the measured latencies."""
    experiment = data.experiment
    rows: list[tuple[Any, ...]] = []
    for budget in BUDGETS:
        paper = printed(find(PLACE, "probe_share", setting=f"T={budget}", system="ev"))
        for row in costs(data.cells).itertuples():
            key = (row.direction, row.testset, f"T = {budget}")
            # EV's calls are its probes and the steps that follow.
            rows.append(("probe_share", *key, (row.calls - row.steps) / budget, None))
            rows.append(("probe_cap", *key, len(grid(experiment, "ev", row.direction)) / budget, paper))
    for part, kind in TIMED.items():
        for cell, measured in timed.items():
            # The paper has measured batches alone.
            number = find(PLACE, "latency_batch16", direction=cell.direction, system=cell.method)
            paper = printed(number) if part == "latency_batched" else None
            key = (cell.direction, cell.testset, cell.method)
            rows.append((part, *key, measured[kind]["seconds_per_sentence"], paper))
    # Benchmarks tell no GPUs; the config says what a job holds.
    held = gpus(experiment.device, experiment.training.processes)
    stages = stage_hours(Path(data.files.root, "benchmarks"), held)
    for part, paper in (("hours", None), ("gpu_hours", printed(find(PLACE, "gpu_hours")))):
        # A stage without a GPU has no GPU-hours.
        took = stages.loc[stages[part] > 0, ["stage", part]]
        rows += [(part, "", "", *values, None) for values in took.itertuples(index=False)]
        rows.append((part, "", "", "all", stages[part].sum(), paper))
    return pd.DataFrame(rows, columns=FIELDS)


def printed(number: Published | None) -> str | None:
    return number.text if number else None
