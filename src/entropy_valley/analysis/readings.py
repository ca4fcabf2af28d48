"""What a reading of the paper moves: variants of a backbone beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.analysis.scores import sentences
from entropy_valley.analysis.summary import SETTING, summarise
from entropy_valley.late import pandas as pd

SYSTEM = ("direction", "testset", "method", "order", "steps", "seed")


@dataclass(frozen=True)
class ReadingsParams(Params):
    """As :class:`Params`; the method whose closures are shown, and the backbone that each is a variant of."""

    against: str = "ev"
    origins: Mapping[str, str] = field(default_factory=dict)


def readings(params: ReadingsParams) -> pd.DataFrame:
    """The summary of :func:`summarise`, with ``changed``: the share of sentences whose score in the main metric is
    not that under the readings of the backbone's origin, in the same system; the mean over runs. NaN for the origins,
    and for other metrics."""
    known = {(cell.backbone, *attrgetter(*SYSTEM)(cell)): cell for cell in params.cells}
    shares: dict[tuple[object, ...], list[float]] = {}
    for cell in params.cells:
        if (origin := params.origins[cell.backbone]) != cell.backbone:
            place = (*attrgetter(*SETTING, "method")(cell), params.metric.name)
            shares.setdefault(place, []).append(_changed(cell, known[origin, *attrgetter(*SYSTEM)(cell)], params))
    summary = summarise(params.cells, params.metrics)
    places = summary[[*SETTING, "method", "metric"]].itertuples(index=False, name=None)
    means = {place: sum(values) / len(values) for place, values in shares.items()}
    return summary.assign(changed=[means.get(place, float("nan")) for place in places])


def _changed(cell: ScoredCell, other: ScoredCell, params: Params) -> float:
    scores, others = (sentences(one, params.metric) for one in (cell, other))
    return float((scores != others.reindex(scores.index)).mean())
