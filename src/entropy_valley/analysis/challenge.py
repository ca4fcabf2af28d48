"""SIG-first against MED on a challenge subset, by category of the source, and where the SIG is concentrated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from entropy_valley import files
from entropy_valley.analysis.comparisons import by_run
from entropy_valley.analysis.order_sweep import FIXED, RUN, SYSTEM, TESTED, OrderParams, fixed
from entropy_valley.analysis.params import ScoredCell
from entropy_valley.analysis.scores import require_sentences, sentences
from entropy_valley.analysis.significance import paired_test
from entropy_valley.data.categories import CATEGORIES, Reading, categories_of
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.late import scipy

OVERALL = "overall"
COLUMNS = [*RUN, "category", "metric", "value"]


@dataclass(frozen=True)
class ChallengeParams(OrderParams):
    """As :class:`OrderParams`, of two orders; ``testsets`` has the file of each cell, by its name.

    ``challenge`` is the reading by whose rules sentences have categories, ``concentration`` that of the SIG.
    """

    testsets: Mapping[str, str] = field(default_factory=dict)
    challenge: Reading = "stratified"
    concentration: str = "gini"

    @classmethod
    def parse(cls, value: Mapping[str, Any], required: Iterable[str] = ()) -> Self:
        """As :meth:`OrderParams.parse`; a cell without its file, or other orders than two, is an InputError."""
        params = super().parse(value, ("testsets", *required))
        others = [name for name in params.orders if name != params.main]
        if len(others) != 1:
            raise InputError("PARAMS", f"orders {', '.join(params.orders)}", f"Give {params.main} and one other.")
        if absent := [cell.name for cell in params.cells if cell.name not in params.testsets]:
            raise InputError("PARAMS", f"no testset for {absent[0]}", "Give one for each cell.")
        return dataclasses.replace(params, cells=tuple(cell for cell in params.cells if cell.method == FIXED))

    @property
    def other(self) -> str:
        """The order that is compared with the main one."""
        return next(name for name in self.orders if name != self.main)


def negative_order(params: ChallengeParams) -> pd.DataFrame:
    """The tidy numbers, :data:`COLUMNS`, by category and for the whole subset (:data:`OVERALL`).

    Of each: ``sentences``, ``other`` and ``main``, the mean sentence score of the two orders, and the paired test of
    their difference; of a category without sentences only that there are none. Of the whole also ``spearman_rho`` and
    ``spearman_p`` (two-sided), of the SIG-Concentration with the other order's lead over the main one; NaN where either
    is constant. A run is tested by itself. Raises InputError where files are not of the same sentences.
    """
    rows = []
    for run, systems in by_run(params.cells, RUN, SYSTEM).items():
        frame = _sentences(params, fixed(systems, params.other), fixed(systems, params.main))
        found = {name: _compared(params, frame[[name in of for of in frame["categories"]]]) for name in CATEGORIES}
        found[OVERALL] = _compared(params, frame) | _correlation(frame)
        rows += [(*run, category, *item) for category, numbers in found.items() for item in numbers.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


def _sentences(params: ChallengeParams, other: ScoredCell, main: ScoredCell) -> pd.DataFrame:
    """``other``, ``main``, ``concentration`` and ``categories`` of each sentence, by its id."""
    testset = files.read_jsonl(params.testsets[main.name], ("id", "source", "target"))
    sigs = {row["id"]: row["concentration"] for row in main.diagnostics("sig")}
    columns = {
        other.within(other.scores_file): sentences(other, params.metric),
        main.within(main.scores_file): sentences(main, params.metric),
        main.within(main.diagnostics_file): pd.Series(sigs, dtype=float),
    }
    ids = [row["id"] for row in testset]
    for path, values in columns.items():
        require_sentences(path, values.index, params.testsets[main.name], ids)
    named = zip(("other", "main", "concentration"), columns.values(), strict=True)
    frame = pd.DataFrame({name: values.loc[ids] for name, values in named})
    pairs = ((row["source"], row["target"]) for row in testset)
    return frame.assign(categories=[categories_of(pair, main.direction, params.challenge) for pair in pairs])


def _compared(params: ChallengeParams, frame: pd.DataFrame) -> dict[str, float]:
    if frame.empty:
        return {"sentences": 0}
    test = asdict(paired_test(frame["other"], frame["main"], params.how))
    means: dict[str, Any] = {name: float(frame[name].mean()) for name in ("other", "main")}
    return {"sentences": len(frame), **means, **{name: test[name] for name in TESTED}}


def _correlation(frame: pd.DataFrame) -> dict[str, float]:
    benefit = frame["other"] - frame["main"]
    if len(frame) < 3 or benefit.nunique() < 2 or frame["concentration"].nunique() < 2:
        return {"spearman_rho": float("nan"), "spearman_p": float("nan")}
    found = scipy.stats.spearmanr(frame["concentration"], benefit)
    return {"spearman_rho": float(found.statistic), "spearman_p": float(found.pvalue)}
