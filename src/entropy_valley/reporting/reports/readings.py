"""A study of readings: a row for each variant of a backbone, what all its systems score, and what has changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from entropy_valley.analysis.readings import ReadingsParams, readings
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.experiment.paths import checkpoint_of
from entropy_valley.experiment.schema import Study
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats, notes
from entropy_valley.reporting.labels import closure_title, shown
from entropy_valley.reporting.report import OfStudy, TableReport
from entropy_valley.reporting.reports.study_columns import NOTES
from entropy_valley.reporting.results import Place, Results
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table


class Readings(OfStudy, TableReport):
    """A section for each direction, a row for each backbone, the methods beside each other."""

    caption = (
        "One system under several readings of the paper: {metric} of each length method, and BLEU, gap closures and "
        "changed sentences of one of them. Oracle uses the reference's length and is an upper bound; the CSV has all "
        "numbers of all methods."
    )
    parsed = ReadingsParams

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        if len({(cell.order, cell.steps) for cell in cells}) > 1:
            yield "the layout readings is of one reveal order and one T; name one of each"
        if lacking := {"oracle", "ratio", study.against} - {cell.method for cell in cells}:
            yield f"the layout readings needs the methods {', '.join(sorted(lacking))}; add them"
        there = set(cells)
        for cell in cells:
            run, origin = cell.run, checkpoint_of(experiment, cell.run.backbone)
            if dataclasses.replace(cell, run=dataclasses.replace(run, backbone=origin)) not in there:
                yield f"{run.backbone!r} is compared with {origin!r}, which has no seed {run.seed} here; add it"

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        backbones = dict.fromkeys(cell.run.backbone for cell in cells)
        return {
            "against": experiment.studies[self.name].against,
            "origins": {name: checkpoint_of(experiment, name) for name in backbones},
        }

    def numbers(self, params: ReadingsParams) -> pd.DataFrame:
        return readings(params)

    def table(self, params: ReadingsParams, numbers: pd.DataFrame) -> Table:
        results, main = Results(numbers), shown(params, params.against).short
        sections: dict[str, list[Group]] = {}
        for place in results.places:
            heading = params.place(place.direction, place.testset)
            sections.setdefault(heading, []).append(_group(params, results, place))
        columns = (
            Column("Readings", align="l"),
            *(Column(shown(params, name).short, params.metric.label) for name in results.methods),
            *(Column(main, metric.label) for metric in params.shown_metrics[1:]),
            *(Column(closure_title(name)) for name in results.baselines),
            Column("Changed", align="r"),
        )
        said = (
            f"Reveal order {results.order}, T = {results.steps}. Closures and changes: of {main}.",
            f"Changed: sentences with another {params.metric.label} than under the readings of the first row of the "
            "backbone, mean over runs.",
        )
        whole = tuple(Section(tuple(groups), heading) for heading, groups in sections.items())
        closures = [NOTES[name] for name, _ in zip(("closure", "closure_eos"), results.baselines, strict=False)]
        below = (*map(Note, [*said, *closures]), *notes.spread(numbers), *notes.doubtful_gaps(params))
        return Table(columns, whole, below)


def _group(params: ReadingsParams, results: Results, place: Place) -> Group:
    main, metric, others = params.against, params.metric, params.shown_metrics[1:]
    changed = results.row(place, main, metric).changed
    scores = [results.score(place, name, metric) for name in results.methods]
    scores += [results.score(place, main, other) for other in others]
    closures = [results.closure(place, main, metric, baseline=name) for name in results.baselines]
    same = formats.NONE if pd.isna(changed) else formats.percent(changed, float("nan"))
    texts = (cell.text for cell in (*scores, *closures))
    return Group(params.label("backbones", place.backbone), (Row((*map(Cell, texts), Cell(same))),))
