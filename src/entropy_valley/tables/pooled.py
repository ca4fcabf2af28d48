"""Length methods over all backbones, directions and runs of a study: shares of gaps with intervals over sentences.

The layouts ``pooled`` and ``ceiling``. A study of the layout ``systems`` shows the same cells place by place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from entropy_valley.config.matrix import Cell
from entropy_valley.config.methods import base_method
from entropy_valley.stats.significance import LEVELS, bootstrap_means
from entropy_valley.stats.summary import BASELINES
from entropy_valley.tables import formats
from entropy_valley.tables.base import OfStudy, TableReport
from entropy_valley.tables.formats import closure_title, ordered
from entropy_valley.tables.of_results import PLACE, by_run, gap_closures, mean, per_sentence, sample_std
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Table, TableSection

RUN = [*PLACE, "backbone", "seed"]
EVERY = "all"  # backbones together
HINDSIGHT = "hindsight"  # the best of several canvases, sentence by sentence
COUNTED = {"length_mae": "mae", "calls": "calls", "passes": "passes"}  # per sentence, by the names of the CSV
READING = (
    "Gap closure: of the means over all runs and sentences. Brackets: 95 % percentile bootstrap over sentences; those "
    "at the same place in the test sets of the directions are drawn together. ±: sample standard deviation over seeds, "
    "each with the runs of all backbones and directions; n/a: the interval of the reference's lead contains 0.",
    "Canvas error: mean |canvas length − reference canvas|, in slots.",
)
LEADS = "Leads: runs in which the mean score is higher, without a test."


def _share(row: Mapping[str, float], prefix: str) -> str:
    """``92.9 % [88.2, 98.3] ± 1.2``; a dash where there is none, as for the baseline itself."""
    if pd.isna(row[prefix]):
        return formats.NOT_AVAILABLE
    low, high, std = (row[f"{prefix}_{name}"] for name in ("low", "high", "std"))
    text = formats.percent(row[prefix])
    if not (pd.isna(low) or low == high):
        text += f" [{', '.join(formats.number(100 * limit, 1) for limit in (low, high))}]"
        text += "" if pd.isna(std) else f" ± {100 * std:.1f}"
    return text


class Pooled(OfStudy, TableReport):
    """A row for each method, a section for all backbones together and for each of them."""

    caption = (
        "Length methods over all runs of a study: the share of the {metric} gap between a fixed ratio and the "
        "reference's length that each method closes, and what a sentence costs."
    )

    recorded = ("best_of", "against")

    @property
    def against(self) -> str:
        """The method that each one is compared with, run by run."""
        return self.study.against

    def problems(self) -> Iterator[str]:
        yield from self.of_one_setting()
        yield from self.of_methods("oracle", *BASELINES, self.against)

    @property
    def best_of(self) -> list[str]:
        """The methods of which the best canvas by hindsight is shown, too."""
        return []

    @functools.cached_property
    def methods(self) -> list[str]:
        return ordered(cell.method for cell in self.cells)

    @functools.cached_property
    def backbones(self) -> dict[str, list[Cell]]:
        """The cells of all backbones together, if there are several, and of each."""
        names = list(dict.fromkeys(cell.backbone for cell in self.cells))
        each = {name: [cell for cell in self.cells if cell.backbone == name] for name in names}
        return {EVERY: self.cells, **each} if len(names) > 1 else each

    def numbers(self, results: Results) -> pd.DataFrame:
        """One row per backbone, or ``all``, and method.

        Columns: ``runs``; for each prefix of BASELINES the share of the gap (1 is all of it), its limits ``…_low`` and
        ``…_high`` and its deviation ``…_std`` over seeds; ``mae``, ``calls`` and ``passes`` per sentence; ``leads``,
        the runs whose mean score is above that of ``against``; ``above`` and ``below``, the shares of sentences that
        score above and below the reference's length.
        """
        rows = []
        for backbone, cells in self.backbones.items():
            scores = self.scores(results, cells)
            of_runs = scores.groupby(level=RUN, sort=False).mean()
            by_seed = [_over_places(of_seed) for _, of_seed in of_runs.groupby(level="seed")]
            means = (_over_places(of_runs), pd.concat(by_seed), self._resampled(scores))
            for method in scores:
                costs = [per_sentence(results, cell) for cell in cells if cell.method == method]
                rows.append(
                    {
                        "backbone": backbone,
                        "method": method,
                        "runs": len(of_runs),
                        **_shares(method, *means),
                        **{shown: mean([cost[name] for cost in costs]) for name, shown in COUNTED.items()},
                        "leads": (of_runs[method] > of_runs[self.against]).sum(),
                        "above": (scores[method] > scores["oracle"]).mean(),
                        "below": (scores[method] < scores["oracle"]).mean(),
                    }
                )
        return pd.DataFrame(rows)

    def scores(self, results: Results, cells: Sequence[Cell]) -> pd.DataFrame:
        """The score of each sentence in each run (rows: RUN and ``id``) by each method, and by :data:`HINDSIGHT`, the
        best of those of ``best_of``."""
        frames = {}
        for run, methods in by_run(cells, RUN).items():
            scores = {name: results.sentences(methods[name], self.metric) for name in methods}
            frames[run] = pd.DataFrame(scores)[self.methods]
        whole = pd.concat(frames, names=[*RUN, "id"])
        return whole.assign(**{HINDSIGHT: whole[self.best_of].max(axis=1)}) if self.best_of else whole

    def _resampled(self, scores: pd.DataFrame) -> pd.DataFrame:
        """The means over all of the bootstrap's resamples, a row each."""
        how, of_sentences = self.statistics, scores.groupby(level=[*PLACE, "id"], sort=False).mean()
        places = of_sentences.groupby(level=[*PLACE], sort=False)
        drawn = [bootstrap_means(one.to_numpy(), how.resamples, how.seed, how.generator) for _, one in places]
        return pd.DataFrame(np.mean(drawn, axis=0), columns=scores.columns)

    def columns(self) -> list[tuple[Column, str]]:
        """The titles after the first, with what each entry is asked for."""
        shares = [(Column(closure_title(name)), prefix) for name, prefix in BASELINES.items()]
        counts = [(Column(title, align="r"), name) for title, name in (("Calls", "calls"), ("Passes", "passes"))]
        leads = (Column(f"Leads {self.method(self.against).short}", align="r"), "leads")
        return [*shares, (Column("Canvas error", align="r"), "mae"), leads, *counts]

    def entry(self, row: Mapping[str, float], name: str) -> str:
        if name in BASELINES.values():
            return _share(row, name)
        if name == "leads":
            return formats.NONE if row["method"] == self.against else f"{row['leads']:.0f} of {row['runs']:.0f}"
        if name in ("above", "below"):
            return formats.NONE if row["method"] == "oracle" else formats.percent(row[name])
        return formats.NONE if pd.isna(row[name]) else formats.number(row[name], 2)

    def label(self, method: str) -> str:
        return self.method(method).label

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        columns, sections = self.columns(), []
        for backbone, rows in numbers.groupby("backbone", sort=False):
            runs = rows["runs"].iloc[0]
            name = "All backbones" if backbone == EVERY else self.backbone(backbone)
            groups = [
                Group.of(
                    self.label(row["method"]),
                    (self.entry(row, name) for _, name in columns),
                    shaded=row["method"] == self.against,
                )
                for row in rows.to_dict("records")
            ]
            sections.append(TableSection(groups, f"{name}, {runs} runs"))
        head = (Column("Length method", align="l"), *(column for column, _ in columns))
        lines = [*READING, *[LEADS] * any(name == "leads" for _, name in columns)]
        return Table(head, sections, lines)


def _over_places(of_runs: pd.DataFrame) -> pd.DataFrame:
    """The mean score of each method, in one row: directions and test sets count the same."""
    return of_runs.groupby(level=[*PLACE], sort=False).mean().mean().to_frame().T


def _shares(method: str, whole: pd.DataFrame, by_seed: pd.DataFrame, drawn: pd.DataFrame) -> dict[str, float]:
    """For each baseline the share of the reference's lead over it, its limits, its deviation over seeds; NaN where the
    95 % interval of that lead contains 0."""
    values: dict[str, float] = {}
    for baseline, prefix in BASELINES.items():
        share, low, high, std = [math.nan] * 4
        if np.quantile(drawn["oracle"] - drawn[baseline], LEVELS[0]) > 0:
            (share,), of_seeds, of_draws = (
                gap_closures(means[method], means[baseline], means["oracle"]) for means in (whole, by_seed, drawn)
            )
            (low, high), std = np.nanquantile(of_draws, LEVELS), sample_std(of_seeds)
        values |= {prefix: share, f"{prefix}_low": low, f"{prefix}_high": high, f"{prefix}_std": std}
    return values


class Ceiling(Pooled):
    """What lies above the reference's length: canvases beside it, the nearest candidates to it, and hindsight.

    ``hindsight`` is the best score of the canvases of the reference's length and of those at an offset from it, by
    sentence. It sees the scores: no method can have it.
    """

    caption = (
        "The reference's length is not an upper bound: {metric} of canvases beside it, of the candidate nearest to it "
        "on the grids that methods probe, and of the best of several canvases by hindsight."
    )

    @functools.cached_property
    def beside(self) -> list[str]:
        """The methods whose canvases are at an offset from the reference's length, and that length itself."""
        return [name for name in self.methods if base_method(self.experiment, name) == "oracle"]

    @property
    def best_of(self) -> list[str]:
        return self.beside

    def columns(self) -> list[tuple[Column, str]]:
        shown = [(column, name) for column, name in super().columns() if name not in ("leads", "calls", "passes")]
        return [*shown, (Column("Above the reference's", align="r"), "above"), (Column("Below", align="r"), "below")]

    def label(self, method: str) -> str:
        return f"Best of {len(self.beside)} by hindsight" if method == HINDSIGHT else super().label(method)
