"""The table of a study of several test sets and pools of training pairs: scores by method, EV's lead and its tests.

Its numbers are those of :mod:`systems`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.config.schema import Study
from entropy_valley.stats.cells import Params
from entropy_valley.tables import formats, notes
from entropy_valley.tables.full_significance import ZEROS
from entropy_valley.tables.labels import method, ordered
from entropy_valley.tables.lookup import best
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection
from entropy_valley.tables.systems import MAIN, Systems

BASELINE = "ratio"


class Transfer(Systems):
    """A section for each backbone and direction, a group for each test set, a row for each pool and seed."""

    caption = (
        "{metric} of each length method by evaluation set and pool of training pairs, then Entropy-Valley minus Fixed "
        "ratio, sentence by sentence, with its 95 % confidence interval and two paired tests. Oracle uses the "
        "reference's length and is an upper bound."
    )

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        missing = ", ".join(sorted({BASELINE, study.against} - {cell.method for cell in cells}))
        if missing:
            yield f"the layout {study.layout} compares {study.against} with {BASELINE}; add {missing}"

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        runs = numbers[numbers["statistic"] == "run"]
        methods = ordered(runs["method"])
        lead = f"{method(params['against'][0]).short} − {method(BASELINE).short} [95 % CI]"
        head = (Column("Evaluation set", align="l"), Column("Pool", align="r"), Column("Seed", align="r"))
        scored = (Column(method(name).short, params.metric.label) for name in methods)
        sections = []
        for (backbone, direction), rows in runs.groupby(["backbone", "direction"], sort=False):
            heading = f"{params.label('backbones', str(backbone))}, {params.label('directions', str(direction))}"
            sections.append(TableSection(tuple(_groups(params, methods, rows)), heading))
        columns = (*head, *scored, *map(Column, (lead, "p", "Wilcoxon's p")))
        return Table(columns, tuple(sections), (*_notes(params), *notes.doubtful_gaps(params, ["ratio"])))


def _groups(params: Params, methods: Sequence[str], runs: pd.DataFrame) -> Iterator[Group]:
    for testset, rows in runs.groupby("testset", sort=False):
        of_runs = rows.fillna({"pool": ""}) if "pool" in rows else rows.assign(pool="")
        lines = (
            _row(params, methods, {row["method"]: row for row in systems.to_dict("records")}, *run)
            for run, systems in of_runs.groupby(["pool", "seed"], sort=False)
        )
        yield Group(params.label("testsets", str(testset)), tuple(lines))


def _row(params: Params, methods: Sequence[str], systems: Mapping[str, Any], pool: str, seed: float) -> TableRow:
    """Scores by method, the best that could be deployed bold; and the lead over Fixed Ratio with its tests."""
    metric, tested = params.metric, systems[BASELINE]
    deployable = [system[MAIN] for name, system in systems.items() if not method(name).upper_bound]
    scores = (
        TableCell(
            formats.number(systems[name][MAIN], metric.decimals),
            bold=not method(name).upper_bound and systems[name][MAIN] == best(metric)(deployable),
        )
        for name in methods
    )
    texts = (
        formats.interval(tested["lead"], tested["ci_low"], tested["ci_high"], metric.decimals),
        formats.p_value(tested["p_two_sided"], params.how.resamples),
        formats.small_p(tested["wilcoxon_p"]),
    )
    about = (pool or formats.NONE, f"{seed:.0f}")
    return TableRow((*map(TableCell, about), *scores, *map(TableCell, texts)))


def _notes(params: Params) -> tuple[Note, ...]:
    _, order, steps = params["against"]
    return (
        Note(f"Reveal order {order}, T = {steps}; a row is one run. Bold: the best but for upper bounds."),
        Note(
            "Tests of the difference, both two-sided: p, paired bootstrap over sentences; Wilcoxon's signed-rank test "
            f"{ZEROS[params.how.wilcoxon_zeros]}. The CSV has the other scores, costs and gap closures."
        ),
    )
