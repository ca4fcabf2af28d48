"""The table of two reveal orders on a challenge subset: a row for each category of the source, and all together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from entropy_valley.analysis.challenge import OVERALL, ChallengeParams, negative_order
from entropy_valley.analysis.order_sweep import FIXED, RUN
from entropy_valley.data.categories import refused
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.experiment.schema import Study
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats
from entropy_valley.reporting.labels import order_label
from entropy_valley.reporting.report import diagnostics_files, testset_file
from entropy_valley.reporting.reports.orders import DELTA, Orders, run_heading
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

NOTES = (
    Note("The canvas has the reference's length. A sentence may be in several categories of its source."),
    DELTA,
)
CONCENTRATIONS = {
    "gini": "SIG-Concentration: Gini coefficient of max(SIG, 0) over the slots of the all-mask canvas, as in the "
    "authors' code.",
    "top_share": "SIG-Concentration: share of the total max(SIG, 0) of the all-mask canvas that the slots of the "
    "largest have; our definition.",
}


class Categories(Orders):
    """Two reveal orders by what the source contains: a section for each run, a row for each category."""

    caption = (
        "SIG-first against MED on canvases of the reference's length, on sentences whose source has a date, a list, a "
        "name or a number. SIG is how much a slot depends on the source; each run is tested by itself."
    )
    parsed = ChallengeParams

    def inputs(self, experiment: Experiment) -> list[str]:
        cells = self.cells(experiment)
        testsets = dict.fromkeys(testset_file(experiment, cell) for cell in cells)
        return [*super().inputs(experiment), *testsets, *diagnostics_files(experiment, cells)]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        """As :meth:`Orders.extra`, and where the sentences of each cell are."""
        return {
            **super().extra(experiment, cells),
            "challenge": experiment.corpus.challenge,
            "concentration": experiment.sig_concentration.measure,
            "testsets": {cell.name: testset_file(experiment, cell) for cell in cells},
        }

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        found = [*super().problems(experiment, study, cells)]
        if not found and len({cell.order for cell in cells if cell.method == FIXED}) != 2:
            found = [f"the layout categories compares {experiment.tables.order} with one other order; name two"]
        yield from found
        for direction in dict.fromkeys(cell.run.direction for cell in cells):
            if problem := refused(direction, experiment.corpus.challenge):
                yield f"{problem}; name other directions, or see `corpus.challenge`"

    def numbers(self, params: ChallengeParams) -> pd.DataFrame:
        return negative_order(params)

    def table(self, params: ChallengeParams, numbers: pd.DataFrame) -> Table:
        other, main = (order_label(name, params.orders[name]) for name in (params.other, params.main))
        sections, correlations = [], []
        for key, group in numbers.groupby(list(RUN), sort=False):
            found: dict[str, dict[str, float]] = {}
            for row in group.itertuples(index=False):
                found.setdefault(row.category, {})[row.metric] = row.value
            heading = run_heading(params, key, found[OVERALL]["sentences"])
            rows = tuple(_category(params, name, found[name]) for name in found if name != OVERALL)
            sections += [Section(rows, heading), Section((_category(params, OVERALL, found[OVERALL]),))]
            correlations.append(_correlation(f"{other} − {main}", heading, found[OVERALL]))
        titles = (params.metric.label + " " + name for name in (other, main))
        compared = map(Column, (*titles, f"Δ ({other} − {main}) [95 % CI]", "p"))
        columns = (Column("Category", align="l"), Column("N", align="r"), *compared)
        return Table(columns, tuple(sections), (*NOTES, Note(CONCENTRATIONS[params.concentration]), *correlations))


def _category(params: ChallengeParams, name: str, found: Mapping[str, float]) -> Group:
    count, bold = f"{found['sentences']:.0f}", name == OVERALL
    texts = [count, *[formats.NONE] * 4]
    if found["sentences"]:
        p = formats.p_value(found["p_two_sided"], params.resamples)
        scores = [formats.number(found[name], params.metric.decimals) for name in ("other", "main")]
        texts = [count, *scores, formats.lead(found, params.metric), p]
    return Group(name.capitalize(), (Row(tuple(Cell(text, bold) for text in texts)),))


def _correlation(difference: str, heading: str, found: Mapping[str, float]) -> Note:
    values = formats.signed(found["spearman_rho"], 4)
    if values != formats.NOT_AVAILABLE:
        values += f", two-sided p = {found['spearman_p']:.4f}, N = {found['sentences']:.0f}"
    return Note(f"Spearman's ρ of a sentence's SIG-Concentration and its {difference}: {values} ({heading}).")
