"""Length methods over all backbones, directions and runs of a study: shares of gaps with intervals over sentences.

The layouts ``pooled`` and ``ceiling``. A study of the layout ``systems`` shows the same cells place by place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from entropy_valley.config.matrix import Cell, Run
from entropy_valley.config.methods import base_method
from entropy_valley.results import SCORES
from entropy_valley.stats.closure import BASELINES, gap_closures, mean, per_sentence, require_sentences, sample_std
from entropy_valley.stats.significance import LEVELS, bootstrap_means
from entropy_valley.tables import formats
from entropy_valley.tables.base import OfStudy, TableReport
from entropy_valley.tables.formats import closure_title, ordered
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Note, Table, TableSection

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
    text = formats.percent(row[prefix], math.nan)
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
    def best_of(self) -> Sequence[str]:
        """The methods of which the best canvas by hindsight is shown, too."""
        return ()

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
            scores = Scores(results, cells, self, self.best_of)
            for method in [*self.methods, *[HINDSIGHT] * bool(self.best_of)]:
                of_method = [cell for cell in cells if cell.method == method]
                costs = [per_sentence(results, cell) for cell in of_method]
                rows.append(
                    {
                        "backbone": backbone,
                        "method": method,
                        "runs": len(cells) // len(self.methods),
                        **scores.shares(method),
                        **{shown: mean([cost[name] for cost in costs]) for name, shown in COUNTED.items()},
                        **scores.compared(method, self.against),
                    }
                )
        return pd.DataFrame(rows)

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
            return formats.NONE if row["method"] == "oracle" else formats.percent(row[name], math.nan)
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
        return Table(head, sections, list(map(Note, lines)))


Place = tuple[str, str]  # a direction and a test set


class Scores:
    """The sentences' scores of each method, in each run of some backbones.

    ``best_of``: methods of which the best score of each sentence is one more method, :data:`HINDSIGHT`.
    """

    def __init__(self, results: Results, cells: Sequence[Cell], report: Pooled, best_of: Sequence[str] = ()) -> None:
        self._how = report.statistics
        self._scores: dict[str, dict[Run, dict[Place, pd.Series]]] = {}
        for cell in sorted(cells, key=lambda cell: cell.method != "oracle"):  # all have its order of sentences
            scores, like = results.sentences(cell, report.metric), self._of(cell, "oracle")
            if like is not None:
                require_sentences(results.place(cell, SCORES), scores.index, "the reference's length", like.index)
                scores = scores.loc[like.index]
            place = cell.direction, cell.testset
            self._scores.setdefault(cell.method, {}).setdefault(cell.run, {})[place] = scores
        if best_of:
            of_run = self._scores["oracle"]
            self._scores[HINDSIGHT] = {
                run: {place: _best(self._scores[name][run][place] for name in best_of) for place in places}
                for run, places in of_run.items()
            }

    def _of(self, cell: Cell, method: str) -> pd.Series | None:
        return self._scores.get(method, {}).get(cell.run, {}).get((cell.direction, cell.testset))

    def _runs(self, method: str) -> Iterator[tuple[Run, Place, pd.Series]]:
        for run, of_place in self._scores[method].items():
            for place, scores in of_place.items():
                yield run, place, scores

    def _sums(self, seed: int | None = None) -> dict[str, float]:
        """The mean score of each method over all runs, or those of a seed; directions and test sets count the same."""
        sums = {}
        for method in self._scores:
            places: dict[Place, list[float]] = {}
            for run, place, scores in self._runs(method):
                if seed in (None, run.seed):
                    places.setdefault(place, []).append(scores.mean())
            sums[method] = mean([mean(values) for values in places.values()])
        return sums

    @functools.cached_property
    def _all(self) -> dict[str, float]:
        return self._sums()

    @functools.cached_property
    def _by_seed(self) -> list[dict[str, float]]:
        return [self._sums(seed) for seed in sorted({run.seed for run in self._scores["oracle"]})]

    @functools.cached_property
    def _resampled(self) -> dict[str, np.ndarray]:
        """By method the mean scores of the bootstrap's resamples, (resamples,)."""
        totals = np.zeros((self._how.resamples, len(self._scores)))
        for place in dict.fromkeys(place for _, place, _ in self._runs("oracle")):
            columns = [
                np.mean([scores for _, where, scores in self._runs(method) if where == place], axis=0)
                for method in self._scores
            ]
            table = np.column_stack(columns)  # (sentences, methods)
            totals = totals + bootstrap_means(table, self._how.resamples, self._how.seed, self._how.generator)
        return dict(zip(self._scores, totals.T, strict=True))

    def shares(self, method: str) -> dict[str, float]:
        """For each baseline the share of the reference's lead over it, its limits, its deviation over seeds; NaN where
        the 95 % interval of that lead contains 0."""
        values: dict[str, float] = {}
        for baseline, prefix in BASELINES.items():
            names = (method, baseline, "oracle")
            keys = (prefix, *(f"{prefix}_{name}" for name in ("low", "high", "std")))
            gaps = self._resampled["oracle"] - self._resampled[baseline]
            if not np.quantile(gaps, LEVELS[0]) > 0:  # the reference's lead over the baseline may be chance
                values |= dict.fromkeys(keys, math.nan)
                continue
            low, high = np.nanquantile(gap_closures(*(self._resampled[name] for name in names)), LEVELS)
            share = gap_closures(*([self._all[name]] for name in names))[0]
            of_seeds = gap_closures(*([sums[name] for sums in self._by_seed] for name in names))
            values |= dict(zip(keys, (share, float(low), float(high), sample_std(of_seeds)), strict=True))
        return values

    def compared(self, method: str, against: str) -> dict[str, float]:
        """``leads``: the runs in which a method's mean score is above that of another; ``above`` and ``below``: the
        shares of sentences that score above and below the reference's length, over all runs."""
        leads, differences = 0, []
        for run, place, scores in self._runs(method):
            leads += scores.mean() > self._scores[against][run][place].mean()
            differences.append(scores - self._scores["oracle"][run][place])
        beside = np.concatenate(differences)
        return {"leads": int(leads), "above": float((beside > 0).mean()), "below": float((beside < 0).mean())}


def _best(scores: Iterable[pd.Series]) -> pd.Series:
    """The highest score of each sentence."""
    return pd.concat(list(scores), axis=1).max(axis=1)


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
