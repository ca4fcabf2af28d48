"""The main table: COMET and BLEU of each length method of one backbone in each direction, with gap closures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from entropy_valley.analysis.spec import Spec
from entropy_valley.reporting import notes
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.results import Place, Results, require_one_backbone
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

METRICS = ("comet22", "bleu")


def main_table(spec: Spec, summary: pd.DataFrame, provenance: Sequence[Note] = ()) -> Table:
    """Lay out the summary of a spec's cells, which must be one backbone's, else :class:`InputError`.

    Bold is the best method that could be deployed; EV's rows are shaded.
    """
    results = Results(summary)
    require_one_backbone(results.backbones)
    groups = tuple(
        Group(
            spec.place(place.direction, place.testset),
            tuple(_row(spec, results, place, name) for name in results.methods),
        )
        for place in results.places
    )
    scores = [
        Column(title, over) for over in (spec.metric_name, "sacreBLEU") for title in ("Mean ± Std", "Gap closure")
    ]
    columns = (Column("Direction", align="l"), Column("Method", align="l"), *scores)
    return Table(columns, (Section(groups),), (notes.setting(spec, results), *notes.reading(summary), *provenance))


def _row(spec: Spec, results: Results, place: Place, name: str) -> Row:
    label = spec.labels.get("methods", {}).get(name, method(name).label)
    if name == "ratio" and place.direction in spec.ratios:
        label = f"{label} {spec.ratios[place.direction]:g}"
    cells = [cell(place, name, metric) for metric in METRICS for cell in (results.score, results.closure)]
    return Row((Cell(label, bold=name == "ev"), *cells), shaded=name == "ev")
