"""The matched-data table: COMET of one backbone's length methods beside autoregressive systems of the same pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from operator import attrgetter
from typing import Any, NamedTuple

import pandas as pd

from entropy_valley.checking import subject
from entropy_valley.config import Experiment, matrix
from entropy_valley.config.paths import checkpoint_of
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import SETTING, summarise
from entropy_valley.stats.comparisons import compare_autoregressive, mean_differences, of_shared_seeds
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.full_significance import printed
from entropy_valley.tables.labels import RISING, method
from entropy_valley.tables.lookup import Results, TestPlace, by_kind, is_best, require_one_backbone
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

READING = (
    Note(
        "Scores and differences × 100, as in the paper, over the training seeds that all systems of a direction have."
    ),
    Note("Oracle knows the reference's length: an upper bound. Bold: the best of the other systems of a direction."),
    Note("Differences: run by run at the same training seed, with the 95 % bootstrap interval over its sentences."),
    Note("A mean of them has no deviation: the two trainings of a seed are unrelated, so the pairing is arbitrary."),
    Note("The CSV has the scores from 0 to 1, sacreBLEU, and the p-values of the differences."),
)
KEY = (*SETTING, "method", "against", "metric", "seed")
P_VALUES = ("p_one_sided", "p_two_sided", "p_one_sided_printed", "p_two_sided_printed")
NUMBERS = ("mean", "std", "runs", "ci_low", "ci_high", *P_VALUES, "sentences", "resamples", "bootstrap_seed")


class SystemScores(NamedTuple):
    """A row of scores: a backbone decoded in one way."""

    backbone: str
    method: str
    results: Results

    def score(self, direction: str, testset: str, metric: Metric) -> Any:
        """The summary's row in a direction; :class:`InputError` where there is none."""
        return self.results.row(TestPlace(self.backbone, direction, testset), self.method, metric)


class ArReference(TableReport):
    """The main backbone beside the autoregressive ones, over the seeds that all have, and EV's lead run by run."""

    caption = (
        "Matched data: {metric} × 100 of the main backbone's length methods and of an autoregressive backbone that "
        "was fine-tuned on the same pairs with the same prompts, over the training seeds that both have. Below, "
        "Entropy-Valley minus the autoregressive backbone, run by run; seeds are never pooled."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        autoregressive = matrix.autoregressive_cells(experiment)
        main = matrix.table_cells(experiment, experiment.tables.backbone)
        return main + autoregressive if autoregressive else []

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        """Of each backbone its size and how it was adapted."""
        names = dict.fromkeys(cell.run.backbone for cell in cells)
        return {"systems": {name: [_size(experiment, name), _setting(experiment, name)] for name in names}}

    def numbers(self, params: Params) -> pd.DataFrame:
        """A system's mean over runs; then EV's lead over the backbone ``against``, over runs and by seed."""
        tests = compare_autoregressive(params.cells, **params.test)
        names = {"first": "method", "second_backbone": "against", "delta": "mean"}
        frames = (
            summarise(of_shared_seeds(params.cells), params.metrics),
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
            *layout.scores(diffusion, "masked diffusion"),
            *layout.scores(autoregressive, "autoregressive, same training pairs"),
            *layout.differences(numbers[leads]),
        )
        return Table(layout.columns(), sections, (notes.setting(params, results), *notes.spread(summary), *READING))


def _size(experiment: Experiment, backbone: str) -> str:
    """``8.0B``: the parameters of its shape; a dash where that is known only from its checkpoint."""
    shape = subject.backbone(experiment, checkpoint_of(experiment, backbone))["arguments"]
    return formats.parameters(subject.Size.of(shape).parameters) if shape else formats.NONE


def _setting(experiment: Experiment, backbone: str) -> str:
    return "zero-shot" if experiment.backbones[backbone].zero_shot else "LoRA-SFT"


def systems(params: Params, summary: pd.DataFrame) -> tuple[list[SystemScores], list[SystemScores]]:
    """The rows of the two sections of scores."""
    results, beams = map(Results, by_kind(params, summary))
    require_one_backbone(results.backbones)
    return (
        [SystemScores(results.backbones[0], name, results) for name in RISING],
        [SystemScores(backbone, name, beams) for backbone in beams.backbones for name in beams.methods],
    )


@dataclass(frozen=True)
class _Layout:
    """The columns, each place a direction and a test set, and the systems that compete in them."""

    params: Params
    places: Sequence[tuple[str, str]]
    rivals: Sequence[SystemScores]

    @property
    def decimals(self) -> int:
        """Of scores × 100."""
        return max(0, self.params.metric.decimals - 2)

    def columns(self) -> tuple[Column, ...]:
        over = f"{self.params.metric.label} × 100"
        scored = (Column(self.params.place(*place), over) for place in self.places)
        return (Column("System", align="l"), Column("Size", align="r"), Column("Setting", align="l"), *scored)

    def scores(self, systems: Sequence[SystemScores], kind: str) -> Iterator[TableSection]:
        """A section per backbone."""
        for backbone, rows in itertools.groupby(systems, key=attrgetter("backbone")):
            yield TableSection(tuple(map(self._row, rows)), f"{self.params.label('backbones', backbone)}, {kind}")

    def _row(self, system: SystemScores) -> Group:
        metric, cells = self.params.metric, []
        for place in self.places:
            row, rivals = system.score(*place, metric), [rival.score(*place, metric) for rival in self.rivals]
            text = formats.mean_std(100 * row.mean, 100 * row.std, self.decimals)
            cells.append(TableCell(text, bold=is_best(row, rivals, metric)))
        about = map(TableCell, self.params["systems"][system.backbone])
        return Group(method(system.method).label, (TableRow((*about, *cells), shaded=system.method == "ev"),))

    def differences(self, leads: pd.DataFrame) -> Iterator[TableSection]:
        """A section per autoregressive backbone: the mean where there are several runs, then each with its interval."""
        for backbone, rows in leads.groupby("against", sort=False):
            runs, lines = rows.dropna(subset="seed").sort_values("seed", kind="stable"), {}
            if runs["seed"].nunique() > 1:
                lines["Mean over runs"] = self._texts(rows[rows["seed"].isna()], self._mean)
            for seed, run in runs.groupby("seed"):
                lines[f"Seed {seed:.0f}"] = self._texts(run, self._run)
            heading = f"{method('ev').label} − {self.params.label('backbones', str(backbone))}"
            yield TableSection(tuple(starmap(self._line, lines.items())), heading)

    def _texts(self, rows: pd.DataFrame, text: Callable[[Any], str]) -> dict[tuple[str, str], str]:
        return {(row.direction, row.testset): text(row) for row in rows.itertuples()}

    def _mean(self, row: Any) -> str:
        return formats.signed(100 * row.mean, self.decimals)

    def _run(self, row: Any) -> str:
        return formats.interval(100 * row.mean, 100 * row.ci_low, 100 * row.ci_high, self.decimals)

    def _line(self, label: str, texts: Mapping[tuple[str, str], str]) -> Group:
        leads = (TableCell(texts.get(place, formats.NOT_AVAILABLE)) for place in self.places)
        return Group(label, (TableRow((TableCell(""), TableCell(""), *leads)),))
