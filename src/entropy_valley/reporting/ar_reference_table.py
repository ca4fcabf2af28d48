"""The matched-data table: COMET of one backbone's length methods beside autoregressive systems of the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple

import pandas as pd

from entropy_valley.analysis.comparisons import mean_differences
from entropy_valley.analysis.spec import Spec
from entropy_valley.analysis.summary import SETTING
from entropy_valley.reporting import formats, notes
from entropy_valley.reporting.methods import method
from entropy_valley.reporting.results import Place, Results, by_kind
from entropy_valley.reporting.significance import printed
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table

METHODS = ("ratio", "ev", "oracle")
SCALE, DECIMALS = 100, 2  # COMET as the paper prints it here
READING = (
    Note("† knows the reference's length: an upper bound. Bold: the best of the other systems of a direction."),
    Note("Differences: run by run at the same training seed, with the 95 % bootstrap interval over its sentences."),
    Note("The CSV has sacreBLEU, and the p-values of the differences, too."),
)
KEY = (*SETTING, "method", "against", "metric", "seed")
P_VALUES = ("p_one_sided", "p_two_sided", "p_one_sided_printed", "p_two_sided_printed")
NUMBERS = ("mean", "std", "runs", "ci_low", "ci_high", *P_VALUES, "sentences", "resamples", "bootstrap_seed")


class System(NamedTuple):
    """A row of scores: a backbone decoded in one way."""

    backbone: str
    method: str
    results: Results

    def score(self, direction: str, testset: str) -> Any:
        """The summary's COMET row in a direction; :class:`InputError` where there is none."""
        return self.results.row(Place(self.backbone, direction, testset), self.method, "comet22")


def ar_reference_table(
    spec: Spec, summary: pd.DataFrame, tests: pd.DataFrame, provenance: Sequence[Note] = ()
) -> Table:
    """Lay out a summary and the tests of :func:`comparisons.compare_autoregressive`.

    Raises :class:`InputError` for several masked-diffusion backbones.
    """
    diffusion, autoregressive = systems(summary)
    results = diffusion[0].results
    layout = _Layout(spec, [(place.direction, place.testset) for place in results.places])
    best = layout.best(diffusion + autoregressive)
    sections = (
        Section(layout.scores(diffusion, best), "Masked diffusion"),
        Section(layout.scores(autoregressive, best), "Autoregressive, same training pairs"),
        Section(layout.differences(tests), "Entropy-Valley − autoregressive"),
    )
    made_by = (notes.setting(spec, results), *notes.spread(summary), *READING, *provenance)
    return Table(layout.columns(), sections, made_by)


def systems(summary: pd.DataFrame) -> tuple[list[System], list[System]]:
    """The rows of the two sections of scores."""
    results, beams = map(Results, by_kind(summary))
    results.require_one_backbone()
    return (
        [System(results.backbones[0], name, results) for name in METHODS],
        [System(backbone, name, beams) for backbone in beams.backbones for name in beams.methods],
    )


def numbers(summary: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    """The tidy CSV: a system's mean over runs; then EV's lead over the backbone ``against``, over runs and by seed.

    Scores are in the metrics' own units, not scaled.
    """
    names = {"first": "method", "second_backbone": "against", "delta": "mean"}
    frames = (
        summary,
        mean_differences(tests).rename(columns=names),
        printed(tests).assign(runs=1).rename(columns=names),
    )
    return pd.concat(frames).reindex(columns=[*KEY, *NUMBERS])


@dataclass(frozen=True)
class _Layout:
    """The columns: each place is a direction and a test set."""

    spec: Spec
    places: Sequence[tuple[str, str]]

    def columns(self) -> tuple[Column, ...]:
        over = f"{self.spec.metric_name} × {SCALE}"
        scored = (Column(self.spec.place(*place), over) for place in self.places)
        return (Column("Backbone", align="l"), Column("System", align="l"), *scored)

    def best(self, rows: Sequence[System]) -> list[float]:
        """The highest mean of each place that needs no reference."""
        deployable = [system for system in rows if not method(system.method).upper_bound]
        return [max(system.score(*place).mean for system in deployable) for place in self.places]

    def scores(self, rows: Sequence[System], best: Sequence[float]) -> tuple[Group, ...]:
        """A group per backbone."""
        grouped: dict[str, list[Row]] = {}
        for system in rows:
            grouped.setdefault(system.backbone, []).append(self._row(system, best))
        return tuple(Group(self.spec.label("backbones", name), tuple(rows)) for name, rows in grouped.items())

    def _row(self, system: System, best: Sequence[float]) -> Row:
        named, is_ev = method(system.method), system.method == "ev"
        cells = [Cell(named.label + " †" * named.upper_bound, bold=is_ev)]
        for place, highest in zip(self.places, best, strict=True):
            row = system.score(*place)
            text = formats.mean_std(SCALE * row.mean, SCALE * row.std, DECIMALS)
            cells.append(Cell(text, bold=row.mean == highest and not named.upper_bound))
        return Row(tuple(cells), shaded=is_ev)

    def differences(self, tests: pd.DataFrame) -> tuple[Group, ...]:
        """A group per autoregressive system: the mean over runs, then every run with its interval."""
        groups = []
        for backbone, tests_of in tests.groupby("second_backbone", sort=False):
            means = mean_differences(tests_of).itertuples()
            lines = {"Mean over runs": {(row.direction, row.testset): _mean(row) for row in means}}
            for row in tests_of.sort_values("seed", kind="stable").itertuples():
                lines.setdefault(f"Seed {row.seed}", {})[row.direction, row.testset] = _run(row)
            groups.append(Group(self.spec.label("backbones", backbone), tuple(starmap(self._line, lines.items()))))
        return tuple(groups)

    def _line(self, label: str, texts: Mapping[tuple[str, str], str]) -> Row:
        return Row((Cell(label), *(Cell(texts.get(place, formats.NOT_AVAILABLE)) for place in self.places)))


def _mean(row: Any) -> str:
    return formats.mean_std(SCALE * row.mean, SCALE * row.std, DECIMALS, sign="+")


def _run(row: Any) -> str:
    return formats.interval(SCALE * row.delta, SCALE * row.ci_low, SCALE * row.ci_high, DECIMALS)
