"""The cross-backbone table: COMET, then BLEU, of Oracle, Ratio and EV for every backbone and direction."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting import notes
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.results import Place, Results
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

METHODS = ("oracle", "ratio", "ev")


def crossbb_table(spec: Spec, summary: pd.DataFrame, provenance: Sequence[Note] = ()) -> Table:
    """Lay out the summary of a spec's cells: a section per metric, a group per backbone, a row per direction."""
    results = Results(summary)
    titles = (*(method(name).short for name in METHODS), "Δ EV−Ratio", "Gap closure")
    columns = (Column("Backbone", align="l"), Column("Direction", align="l"), *map(Column, titles))
    sections = tuple(
        Section(_groups(spec, results, metric), heading)
        for metric, heading in (("comet22", spec.metric_name), ("bleu", "sacreBLEU"))
    )
    return Table(columns, sections, (notes.setting(spec, results), *notes.reading(summary), *provenance))


def _groups(spec: Spec, results: Results, metric: str) -> tuple[Group, ...]:
    return tuple(
        Group(
            spec.label("backbones", backbone),
            tuple(_row(spec, results, place, metric) for place in results.places if place.backbone == backbone),
        )
        for backbone in results.backbones
    )


def _row(spec: Spec, results: Results, place: Place, metric: str) -> Row:
    scores = [results.score(place, name, metric, shaded=name == "ev") for name in METHODS]
    delta, closure = results.delta(place, "ev", metric), results.closure(place, "ev", metric, shaded=True)
    return Row((Cell(spec.place(place.direction, place.testset)), *scores, delta, closure))
