"""A study of readings: a row for each variant of a backbone, what all its systems score, and what has changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.config.paths import checkpoint_of
from entropy_valley.config.schema import Study
from entropy_valley.stats.cells import Params, ScoredCell
from entropy_valley.stats.closure import SETTING, sentences, summarise
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import OfStudy, TableReport
from entropy_valley.tables.labels import closure_title, shown
from entropy_valley.tables.lookup import Results, TestPlace
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection
from entropy_valley.tables.systems import NOTES

SYSTEM = ("direction", "testset", "method", "order", "steps", "seed")


class Readings(OfStudy, TableReport):
    """A section for each direction, a row for each backbone, the methods beside each other."""

    caption = (
        "One system under several readings of the paper: {metric} of each length method, and BLEU, gap closures and "
        "changed sentences of one of them. Oracle uses the reference's length and is an upper bound; the CSV has all "
        "numbers of all methods."
    )

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[matrix.Cell]) -> Iterator[str]:
        if len({(cell.order, cell.steps) for cell in cells}) > 1:
            yield "the layout readings is of one reveal order and one T; name one of each"
        if lacking := {"oracle", "ratio", study.against} - {cell.method for cell in cells}:
            yield f"the layout readings needs the methods {', '.join(sorted(lacking))}; add them"
        all_cells = set(cells)
        for cell in cells:
            run, origin = cell.run, checkpoint_of(experiment, cell.run.backbone)
            if dataclasses.replace(cell, run=dataclasses.replace(run, backbone=origin)) not in all_cells:
                yield f"{run.backbone!r} is compared with {origin!r}, which has no seed {run.seed} here; add it"

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        backbones = dict.fromkeys(cell.run.backbone for cell in cells)
        return {
            "against": experiment.studies[self.name].against,
            "origins": {name: checkpoint_of(experiment, name) for name in backbones},
        }

    def numbers(self, params: Params) -> pd.DataFrame:
        return readings(params)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        results, main = Results(numbers), shown(params, params["against"]).short
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
        lines = (
            f"Reveal order {results.order}, T = {results.steps}. Closures and changes: of {main}.",
            f"Changed: sentences with another {params.metric.label} than under the readings of the first row of the "
            "backbone, mean over runs.",
        )
        whole = tuple(TableSection(tuple(groups), heading) for heading, groups in sections.items())
        closures = [NOTES[name] for name, _ in zip(("closure", "closure_eos"), results.baselines, strict=False)]
        below = (*map(Note, [*lines, *closures]), *notes.spread(numbers), *notes.doubtful_gaps(params))
        return Table(columns, whole, below)


# --- The numbers.


def readings(params: Params) -> pd.DataFrame:
    """The summary of :func:`summarise`, with ``changed``: the share of sentences whose score in the main metric is
    not that under the readings of the backbone's origin, in the same system; the mean over runs. NaN for the origins,
    and for other metrics."""
    by_system = {(cell.backbone, *attrgetter(*SYSTEM)(cell)): cell for cell in params.cells}
    shares: dict[tuple[object, ...], list[float]] = {}
    for cell in params.cells:
        if (origin := params["origins"][cell.backbone]) != cell.backbone:
            place = (*attrgetter(*SETTING, "method")(cell), params.metric.name)
            shares.setdefault(place, []).append(_changed(cell, by_system[origin, *attrgetter(*SYSTEM)(cell)], params))
    summary = summarise(params.cells, params.metrics)
    places = summary[[*SETTING, "method", "metric"]].itertuples(index=False, name=None)
    means = {place: sum(values) / len(values) for place, values in shares.items()}
    return summary.assign(changed=[means.get(place, float("nan")) for place in places])


def _changed(cell: ScoredCell, other: ScoredCell, params: Params) -> float:
    scores, others = (sentences(one, params.metric) for one in (cell, other))
    return float((scores != others.reindex(scores.index)).mean())


# --- The layout.


def _group(params: Params, results: Results, place: TestPlace) -> Group:
    main, metric, others = params["against"], params.metric, params.shown_metrics[1:]
    changed = results.row(place, main, metric).changed
    scores = [results.score(place, name, metric) for name in results.methods]
    scores += [results.score(place, main, other) for other in others]
    closures = [results.closure(place, main, metric, baseline=name) for name in results.baselines]
    same = formats.NONE if pd.isna(changed) else formats.percent(changed, float("nan"))
    texts = (cell.text for cell in (*scores, *closures))
    return Group(params.label("backbones", place.backbone), (TableRow((*map(TableCell, texts), TableCell(same))),))
