"""Systems tested against each other, run by run: the paired tests of all runs, and EV beside autoregressive systems."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from entropy_valley.checking import subject
from entropy_valley.config.matrix import Cell, autoregressive_cells, table_cells
from entropy_valley.config.paths import checkpoint_of
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.formats import RISING
from entropy_valley.tables.of_results import SETTING, compare, compare_autoregressive, of_shared_seeds, summarise
from entropy_valley.tables.pivot import At, Summary, pivot, placed
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableSection

# --- The paired tests of every run: Oracle, EV and Ratio against each other, and how many of the tests hold.

LEVEL = 0.001  # of both p, below which a lead holds, as in the paper's sentence on all backbones
ZEROS = {"pratt": "with Pratt's treatment of zeros", "wilcox": "without zeros"}


class Significance(TableReport):
    """EV, Ratio and Oracle against each other, sentence by sentence: a section per backbone, a group per run."""

    caption = (
        "Paired sentence-level {metric} tests of each run: bootstrap, Wilcoxon signed-rank {zeros}, and paired Cohen's "
        "d. Seeds are never pooled. Below, in how many runs each lead holds."
    )
    bleu = False

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return table_cells(self.experiment)

    @property
    def text(self) -> str:
        return super().text.replace("{zeros}", ZEROS[self.statistics.wilcoxon_zeros])

    def numbers(self, results: Results) -> pd.DataFrame:
        return printed(compare(results, self.cells, self.metric, self.statistics))

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        decimals = self.metric.decimals
        places = zip(placed(numbers)["place"], numbers["seed"], strict=True)
        runs = [f"{self.place(*place)}, seed {seed}" for place, seed in places]
        names = list(map(formats.difference, numbers["first"], numbers["second"]))
        tests = numbers.assign(backbone=numbers["backbone"].map(self.backbone), run=runs, comparison=names)
        texts: dict[str, Callable[[Any], str]] = {
            "Δ [95 % CI]": lambda test: formats.interval(test.delta, test.ci_low, test.ci_high, decimals),
            "p": lambda test: test.p_two_sided_printed,
            "Wilcoxon's p": lambda test: formats.small_p(test.wilcoxon_p),
            "Cohen's d": lambda test: formats.signed(test.cohens_d, 2),
        }

        def cells(at: At, of_row: pd.DataFrame) -> Iterator[str]:
            (test,) = of_row.itertuples()
            return (text(test) for text in texts.values())

        columns = (Column("Run", align="l"), Column("Comparison", align="l"), *map(Column, texts))
        sections = pivot(tests, (("backbone",), "run", ("comparison",)), cells, lambda key, at: TableCell(at[key]))
        few = notes.few_sentences(numbers["sentences"])
        return Table(columns, sections, (*_notes(self), *few, *_held(self, numbers)))


def printed(comparisons: pd.DataFrame) -> pd.DataFrame:
    """:func:`comparisons.compare` with ``p_one_sided_printed`` and ``p_two_sided_printed`` behind."""
    columns = {
        f"{name}_printed": [
            formats.p_value(p, n, sides) for p, n in zip(comparisons[name], comparisons["resamples"], strict=True)
        ]
        for name, sides in {"p_one_sided": 1, "p_two_sided": 2}.items()
    }
    return comparisons.assign(**columns)


def holds(tests: pd.DataFrame) -> pd.Series:
    """Of each test, whether the first system leads: the interval lies above 0, and the two-sided p of the bootstrap and
    of Wilcoxon's test below LEVEL. A bootstrap's p of 0 says no more than that it is below 2 / resamples."""
    bootstrap = (tests["p_two_sided"] < LEVEL) & (2 / tests["resamples"] <= LEVEL)
    return (tests["ci_low"] > 0) & bootstrap & (tests["wilcoxon_p"] < LEVEL)


def _notes(report: Significance) -> tuple[str, ...]:
    """What is in the columns."""
    how = report.statistics
    return (
        f"{report.metric.label} of each sentence, in each run (training seed) by itself.",
        (
            f"Δ and p: paired bootstrap, {how.resamples:,} resamples, percentile interval. All p here are two-sided: "
            "twice the smaller share of resamples on either side of 0. Those of the paper's table are one-sided, as "
            "p_one_sided in the CSV."
        ),
        f"Wilcoxon: signed-rank test, {ZEROS[how.wilcoxon_zeros]}. d: paired, {how.cohen} deviation.",
        "No p is corrected for the number of tests, here as in the paper.",
    )


def _held(report: Significance, tests: pd.DataFrame) -> list[str]:
    """In how many runs each comparison holds, in all and for each backbone."""
    resamples = report.statistics.resamples
    few = f" ({resamples:,} resamples are too few for that)" if 2 / resamples > LEVEL else ""
    lines = [f"A lead holds if its interval is above 0 and both p below {LEVEL:g}{few}. In how many runs:"]
    tests = tests.assign(held=holds(tests))
    for (first, second), rows in tests.groupby(["first", "second"], sort=False):
        parts = [
            f"{report.backbone(str(backbone))} {_counted(of_one)}"
            for backbone, of_one in rows.groupby("backbone", sort=False)
        ]
        several = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        lines.append(f"{formats.difference(str(first), str(second))}: {_counted(rows)}{several}.")
    return lines


def _counted(tests: pd.DataFrame) -> str:
    return f"{tests['held'].sum()} of {len(tests)}"


# --- Matched data: one backbone's length methods beside autoregressive systems of the same pairs.

READING = (
    "Scores and differences × 100, as in the paper, over the training seeds that all systems of a direction have.",
    notes.ORACLE,
    "Bold: the best system of a direction that sees no reference.",
    "Differences: run by run at the same training seed, with the 95 % bootstrap interval over its sentences.",
    "A mean of them has no deviation: the two trainings of a seed are unrelated, so the pairing is arbitrary.",
    "The CSV has the scores from 0 to 1, sacreBLEU, and the p-values of the differences.",
)
KEY = (*SETTING, "method", "against", "metric", "seed")
P_VALUES = ("p_one_sided", "p_two_sided", "p_one_sided_printed", "p_two_sided_printed")
NUMBERS = ("mean", "std", "runs", "ci_low", "ci_high", *P_VALUES, "sentences", "resamples", "bootstrap_seed")


class ArReference(TableReport):
    """The main backbone beside the autoregressive ones, over the seeds that all have, and EV's lead run by run."""

    caption = (
        "Matched data: {metric} × 100 of the main backbone's length methods and of an autoregressive backbone that "
        "was fine-tuned on the same pairs with the same prompts, over the training seeds that both have. Below, "
        "Entropy-Valley minus the autoregressive backbone, run by run; seeds are never pooled."
    )

    @functools.cached_property
    def cells(self) -> list[Cell]:
        autoregressive = autoregressive_cells(self.experiment)
        return self.main_cells + autoregressive if autoregressive else []

    def numbers(self, results: Results) -> pd.DataFrame:
        """A system's mean over runs; then EV's lead over the backbone ``against``, over runs and by seed."""
        tests = compare_autoregressive(results, self.cells, self.metric, self.statistics)
        names = {"first": "method", "second_backbone": "against", "delta": "mean"}
        tests = printed(tests).assign(runs=1).rename(columns=names)
        # A mean has no deviation: two trainings of one seed have nothing in common, and another pairing of the same
        # runs would give another one.
        of_systems = tests.groupby([name for name in KEY if name != "seed"], sort=False)
        means = of_systems["mean"].agg(mean="mean", runs="count").reset_index()
        summary = summarise(results, of_shared_seeds(self.cells), self.metrics)
        return pd.concat([summary, means, tests]).reindex(columns=[*KEY, *NUMBERS])

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        means, leads = numbers[numbers["against"].isna()], numbers[numbers["against"].notna()]
        beam = means["steps"] == 0
        diffusion, beams = Summary(means[~beam]), Summary(means[beam])
        places = diffusion.values("place")
        columns = (
            Column("System", align="l"),
            Column("Size", align="r"),
            Column("Setting", align="l"),
            *(Column(self.place(*place), f"{self.metric.label} × 100") for place in places),
        )
        sections = (*self._scores(diffusion, beams, places), *self._leads(placed(leads), places))
        return Table(columns, sections, (notes.setting(self), *notes.spread(means), *READING))

    @property
    def decimals(self) -> int:
        """Of scores × 100."""
        return max(0, self.metric.decimals - 2)

    def _scores(self, diffusion: Summary, beams: Summary, places: Sequence[tuple[str, str]]) -> Iterator[TableSection]:
        """A section per backbone, a row for each system, the best that could be deployed bold in each place."""
        (main,) = diffusion.values("backbone")
        summaries = {(main, name): diffusion for name in RISING}
        summaries |= {(backbone, name): beams for backbone in beams.values("backbone") for name in beams.methods}
        rows = {
            (backbone, name): [
                summary.row(self.metric, {"backbone": backbone, "method": name, "place": place}) for place in places
            ]
            for (backbone, name), summary in summaries.items()
        }
        deployable = [of_places for (_, name), of_places in rows.items() if name not in self.informed]
        highest = [max(row.mean for row in column) for column in zip(*deployable, strict=True)]
        for backbone, systems in itertools.groupby(rows, key=itemgetter(0)):
            groups = []
            for system in systems:
                cells: list[str | TableCell] = [self._size(backbone), self._setting(backbone)]
                for row, of_best in zip(rows[system], highest, strict=True):
                    text = formats.mean_std(100 * row.mean, 100 * row.std, self.decimals)
                    cells.append(TableCell(text, bold=row.mean == of_best and row.method not in self.informed))
                name = system[1]
                groups.append(Group.of(self.method(name).label, cells, shaded=name == "ev"))
            kind = "masked diffusion" if backbone == main else "autoregressive, same training pairs"
            yield TableSection(groups, f"{self.backbone(backbone)}, {kind}")

    def _leads(self, leads: pd.DataFrame, places: Sequence[tuple[str, str]]) -> Iterator[TableSection]:
        """A section per autoregressive backbone: the mean where there are several runs, then each with its interval."""
        for backbone, rows in leads.groupby("against", sort=False):
            lines: dict[str, dict[tuple[str, str], str]] = {}
            for row in rows.sort_values("seed", na_position="first", kind="stable").itertuples():
                if pd.notna(row.seed):
                    text = formats.interval(100 * row.mean, 100 * row.ci_low, 100 * row.ci_high, self.decimals)
                    lines.setdefault(f"Seed {row.seed:.0f}", {})[row.place] = text
                elif rows["seed"].nunique() > 1:
                    lines.setdefault("Mean over runs", {})[row.place] = formats.signed(100 * row.mean, self.decimals)
            groups = [
                Group.of(label, ["", "", *(texts.get(place, formats.NOT_AVAILABLE) for place in places)])
                for label, texts in lines.items()
            ]
            yield TableSection(groups, f"{self.method('ev').label} − {self.backbone(str(backbone))}")

    def _size(self, backbone: str) -> str:
        """``8.0B``: the parameters of its shape; a dash where that is known only from its checkpoint."""
        shape = subject.backbone(self.experiment, checkpoint_of(self.experiment, backbone))["arguments"]
        return formats.parameters(subject.Size.of(shape).parameters) if shape else formats.NONE

    def _setting(self, backbone: str) -> str:
        return "zero-shot" if self.experiment.backbones[backbone].zero_shot else "LoRA-SFT"
