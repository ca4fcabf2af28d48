"""The matched-data table: COMET of one backbone's length methods beside autoregressive systems of the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple

from entropy_valley.analysis.comparisons import compare_autoregressive, mean_differences
from entropy_valley.analysis.params import Params
from entropy_valley.analysis.summary import SETTING
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats, notes
from entropy_valley.reporting.labels import RISING, method
from entropy_valley.reporting.report import TableReport
from entropy_valley.reporting.reports.significance import printed
from entropy_valley.reporting.results import Place, Results, by_kind, is_best, require_one_backbone
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table
from entropy_valley.scoring.metrics import Metric

SCALE, DECIMALS = 100, 2  # the main metric as the paper prints it here
READING = (
    Note("† knows the reference's length: an upper bound. Bold: the best of the other systems of a direction."),
    Note("Differences: run by run at the same training seed, with the 95 % bootstrap interval over its sentences."),
    Note("Their mean has no deviation: the two trainings of a seed are unrelated, so the pairing is arbitrary."),
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

    def score(self, direction: str, testset: str, metric: Metric) -> Any:
        """The summary's row in a direction; :class:`InputError` where there is none."""
        return self.results.row(Place(self.backbone, direction, testset), self.method, metric)


class ArReference(TableReport):
    """The main backbone beside the autoregressive ones: scores × 100, and EV's lead run by run."""

    caption = (
        "Matched data: {metric} × 100 of the main backbone's length methods and of an autoregressive backbone that "
        "was fine-tuned on the same pairs with the same prompts. Below, Entropy-Valley minus the autoregressive "
        "backbone, run by run; seeds are never pooled."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        autoregressive = matrix.autoregressive_cells(experiment)
        main = matrix.table_cells(experiment, experiment.tables.backbone)
        return main + autoregressive if autoregressive else []

    def numbers(self, params: Params) -> pd.DataFrame:
        """A system's mean over runs; then EV's lead over the backbone ``against``, over runs and by seed.

        Scores are in the metrics' own units, not scaled.
        """
        tests = compare_autoregressive(params.cells, **params.test)
        names = {"first": "method", "second_backbone": "against", "delta": "mean"}
        frames = (
            super().numbers(params),
            mean_differences(tests).rename(columns=names),
            printed(tests).assign(runs=1).rename(columns=names),
        )
        return pd.concat(frames).reindex(columns=[*KEY, *NUMBERS])

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        """Raises :class:`InputError` for several masked-diffusion backbones."""
        leads = numbers["against"].notna()
        summary = numbers[~leads]
        diffusion, autoregressive = systems(params, summary)
        results = diffusion[0].results
        places = [(place.direction, place.testset) for place in results.places]
        layout = _Layout(params, places, diffusion + autoregressive)
        sections = (
            Section(layout.scores(diffusion), "Masked diffusion"),
            Section(layout.scores(autoregressive), "Autoregressive, same training pairs"),
            Section(layout.differences(numbers[leads]), "Entropy-Valley − autoregressive"),
        )
        return Table(layout.columns(), sections, (notes.setting(params, results), *notes.spread(summary), *READING))


def systems(params: Params, summary: pd.DataFrame) -> tuple[list[System], list[System]]:
    """The rows of the two sections of scores."""
    results, beams = map(Results, by_kind(params, summary))
    require_one_backbone(results.backbones)
    return (
        [System(results.backbones[0], name, results) for name in RISING],
        [System(backbone, name, beams) for backbone in beams.backbones for name in beams.methods],
    )


@dataclass(frozen=True)
class _Layout:
    """The columns, each place a direction and a test set, and the systems that compete in them."""

    params: Params
    places: Sequence[tuple[str, str]]
    rivals: Sequence[System]

    def columns(self) -> tuple[Column, ...]:
        over = f"{self.params.metric.label} × {SCALE}"
        scored = (Column(self.params.place(*place), over) for place in self.places)
        return (Column("Backbone", align="l"), Column("System", align="l"), *scored)

    def scores(self, rows: Sequence[System]) -> tuple[Group, ...]:
        """A group per backbone."""
        grouped: dict[str, list[Row]] = {}
        for system in rows:
            grouped.setdefault(system.backbone, []).append(self._row(system))
        return tuple(Group(self.params.label("backbones", name), tuple(rows)) for name, rows in grouped.items())

    def _row(self, system: System) -> Row:
        named, is_ev = method(system.method), system.method == "ev"
        cells = [Cell(named.label + " †" * named.upper_bound, bold=is_ev)]
        metric = self.params.metric
        for place in self.places:
            row, rivals = system.score(*place, metric), [rival.score(*place, metric) for rival in self.rivals]
            text = formats.mean_std(SCALE * row.mean, SCALE * row.std, DECIMALS)
            cells.append(Cell(text, bold=is_best(row, rivals, metric)))
        return Row(tuple(cells), shaded=is_ev)

    def differences(self, leads: pd.DataFrame) -> tuple[Group, ...]:
        """A group per autoregressive system: the mean over runs, then every run with its interval."""
        groups = []
        for backbone, leads_over in leads.groupby("against", sort=False):
            means = leads_over[leads_over["seed"].isna()].itertuples()
            lines = {"Mean over runs": {(row.direction, row.testset): _mean(row) for row in means}}
            for row in leads_over.dropna(subset="seed").sort_values("seed", kind="stable").itertuples():
                lines.setdefault(f"Seed {row.seed:.0f}", {})[row.direction, row.testset] = _run(row)
            groups.append(Group(self.params.label("backbones", backbone), tuple(starmap(self._line, lines.items()))))
        return tuple(groups)

    def _line(self, label: str, texts: Mapping[tuple[str, str], str]) -> Row:
        return Row((Cell(label), *(Cell(texts.get(place, formats.NOT_AVAILABLE)) for place in self.places)))


def _mean(row: Any) -> str:
    return formats.signed(SCALE * row.mean, DECIMALS)


def _run(row: Any) -> str:
    return formats.interval(SCALE * row.mean, SCALE * row.ci_low, SCALE * row.ci_high, DECIMALS)
