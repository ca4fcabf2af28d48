"""The paired tests of every run: Oracle, EV and Ratio against each other, and how many of the tests hold."""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd

from entropy_valley.config.matrix import Cell, table_cells
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.comparisons import compare
from entropy_valley.tables import formats
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.labels import method
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

LEVEL = 0.001  # of a p below which a test holds, as in the paper's sentence on all backbones
COLUMNS = ("Δ [95 % CI]", "p", "Wilcoxon's p", "Cohen's d")
ZEROS = {"pratt": "with Pratt's treatment of zeros", "wilcox": "without zeros"}


class Significance(TableReport):
    """EV, Ratio and Oracle against each other, sentence by sentence: a section per backbone, a group per run."""

    caption = (
        "Paired sentence-level {metric} tests of each run: bootstrap, Wilcoxon signed-rank {zeros}, and paired Cohen's "
        "d. Seeds are never pooled. Below, in how many runs each test holds."
    )

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return table_cells(self.experiment)

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return [self.metric]

    @property
    def text(self) -> str:
        return super().text.replace("{zeros}", ZEROS[self.statistics.wilcoxon_zeros])

    def numbers(self, results: Results) -> pd.DataFrame:
        return printed(compare(results, self.cells, **self.test))

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        columns = (Column("Run", align="l"), Column("Comparison", align="l"), *map(Column, COLUMNS))
        sections = tuple(
            TableSection(_runs(self, rows), self.backbone(str(backbone)))
            for backbone, rows in numbers.groupby("backbone", sort=False)
        )
        return Table(columns, sections, (*_notes(self), *_held(self, numbers)))


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
    """Of each test, whether the first system leads: the interval lies above 0 and the two-sided p below LEVEL."""
    return (tests["ci_low"] > 0) & (tests["p_two_sided"] < LEVEL)


def _runs(report: Significance, tests: pd.DataFrame) -> tuple[Group, ...]:
    runs = tests.groupby(["direction", "testset", "seed"], sort=False)
    return tuple(
        Group(f"{report.place(direction, testset)}, seed {seed}", tuple(_row(report, row) for row in rows.itertuples()))
        for (direction, testset, seed), rows in runs
    )


def _row(report: Significance, test: Any) -> TableRow:
    texts = (
        _comparison(test.first, test.second),
        formats.interval(test.delta, test.ci_low, test.ci_high, report.metric.decimals),
        test.p_two_sided_printed,
        formats.small_p(test.wilcoxon_p),
        formats.signed(test.cohens_d, 2),
    )
    return TableRow(tuple(map(TableCell, texts)))


def _comparison(first: str, second: str) -> str:
    return f"{method(first).short} − {method(second).short}"


def _notes(report: Significance) -> tuple[Note, ...]:
    """What is in the columns."""
    how = report.statistics
    return (
        Note(f"{report.metric.label} of each sentence, in each run (training seed) by itself."),
        Note(
            f"Δ and p: paired bootstrap, {how.resamples:,} resamples, percentile interval. All p here are two-sided: "
            "twice the smaller share of resamples on either side of 0. Those of the paper's table are one-sided, as "
            "p_one_sided in the CSV."
        ),
        Note(f"Wilcoxon: signed-rank test, {ZEROS[how.wilcoxon_zeros]}. d: paired, {how.cohen} deviation."),
    )


def _held(report: Significance, tests: pd.DataFrame) -> list[Note]:
    """In how many runs each comparison holds, in all and for each backbone."""
    lines = [Note(f"A test holds if its interval lies above 0 and its p below {LEVEL:g}. In how many runs:")]
    tests = tests.assign(held=holds(tests))
    for (first, second), rows in tests.groupby(["first", "second"], sort=False):
        parts = [
            f"{report.backbone(str(backbone))} {_counted(of_one)}"
            for backbone, of_one in rows.groupby("backbone", sort=False)
        ]
        several = f" ({', '.join(parts)})" if len(parts) > 1 else ""
        lines.append(Note(f"{_comparison(first, second)}: {_counted(rows)}{several}."))
    return lines


def _counted(tests: pd.DataFrame) -> str:
    return f"{tests['held'].sum()} of {len(tests)}"
