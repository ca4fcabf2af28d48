"""The table of two reveal orders on a challenge subset: a row for each category of the source, and all together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from entropy_valley.config.matrix import Cell
from entropy_valley.data.categories import CATEGORIES, categories_of, refused
from entropy_valley.results import SCORES
from entropy_valley.stats.closure import require_sentences
from entropy_valley.stats.comparisons import by_run
from entropy_valley.stats.significance import paired_test
from entropy_valley.tables import formats, notes
from entropy_valley.tables.order_sweep import DELTA, FIXED, RUN, SYSTEM, TESTED, Orders, fixed
from entropy_valley.tables.reader import Results, diagnostics_file, testset_file
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

OVERALL = "overall"
FIELDS = [*RUN, "category", "metric", "value"]
NOTES = (
    Note("The canvas has the reference's length. A sentence may be in several categories of its source."),
    DELTA,
)
CONCENTRATIONS = {
    "gini": "SIG-Concentration: Gini coefficient of max(SIG, 0) over the slots of the all-mask canvas, as in the "
    "authors' code.",
    "top_share": "SIG-Concentration: share of the total max(SIG, 0) of the all-mask canvas that the slots of the "
    "largest have; our definition.",
}


class Categories(Orders):
    """Two reveal orders by what the source contains: a section for each run, a row for each category."""

    caption = (
        "SIG-first against MED on canvases of the reference's length, on sentences whose source has a date, a list, a "
        "name or a number. SIG is how much a slot depends on the source; each run is tested by itself."
    )

    recorded = (*Orders.recorded, "challenge")

    @property
    def challenge(self) -> str:
        """How a sentence's categories are read."""
        return self.experiment.corpus.challenge

    @property
    def other(self) -> str:
        """The order that is compared with the main one."""
        return next(name for name in self.orders if name != self.main)

    def inputs(self) -> list[str]:
        read = (file(self.experiment.results, cell) for file in (testset_file, diagnostics_file) for cell in self.cells)
        return [*super().inputs(), *dict.fromkeys(read)]

    def problems(self) -> Iterator[str]:
        listed = [*super().problems()]
        if not listed and len({cell.order for cell in self.cells if cell.method == FIXED}) != 2:
            listed = [f"the layout categories compares {self.main} with one other order; name two"]
        yield from listed
        for direction in dict.fromkeys(cell.direction for cell in self.cells):
            if problem := refused(direction, self.challenge):
                yield f"{problem}; name other directions, or see `corpus.challenge`"

    def numbers(self, results: Results) -> pd.DataFrame:
        return negative_order(self, results)

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        other, main = self.order(self.other), self.order(self.main)
        sections, correlations = [], []
        for key, group in numbers.groupby(list(RUN), sort=False):
            values: dict[str, dict[str, float]] = {}
            for row in group.itertuples(index=False):
                values.setdefault(row.category, {})[row.metric] = row.value
            heading = self.run_heading(key, values[OVERALL]["sentences"])
            rows = tuple(_category(self, name, values[name]) for name in values if name != OVERALL)
            sections += [TableSection(rows, heading), TableSection((_category(self, OVERALL, values[OVERALL]),))]
            correlations.append(_correlation(f"{other} − {main}", heading, values[OVERALL]))
        titles = (self.metric.label + " " + name for name in (other, main))
        compared = map(Column, (*titles, f"Δ ({other} − {main}) [95 % CI]", "p"))
        columns = (Column("Category", align="l"), Column("N", align="r"), *compared)
        few = notes.few_sentences(numbers.loc[numbers["metric"] == "sentences", "value"])
        concentration = Note(CONCENTRATIONS[self.experiment.sig_concentration.measure])
        return Table(columns, tuple(sections), (*NOTES, *few, concentration, *correlations))


# --- The numbers.


def negative_order(report: Categories, results: Results) -> pd.DataFrame:
    """The tidy numbers, :data:`FIELDS`, by category and for the whole subset (:data:`OVERALL`).

    Of each: ``sentences``, ``other`` and ``main``, the mean sentence score of the two orders, and the paired test of
    their difference; of a category without sentences only that there are none. Of the whole also ``spearman_rho`` and
    ``spearman_p`` (two-sided), of the SIG-Concentration with the other order's lead over the main one; NaN where either
    is constant. A run is tested by itself. Raises InputError where files are not of the same sentences.
    """
    rows = []
    for run, systems in by_run(report.cells, RUN, SYSTEM).items():
        frame = _sentences(report, results, fixed(systems, report.other), fixed(systems, report.main))
        categories = {
            name: _compared(report, frame[[name in listed for listed in frame["categories"]]]) for name in CATEGORIES
        }
        categories[OVERALL] = _compared(report, frame) | _spearman(frame)
        rows += [(*run, category, *item) for category, numbers in categories.items() for item in numbers.items()]
    return pd.DataFrame(rows, columns=FIELDS)


def _sentences(report: Categories, results: Results, other: Cell, main: Cell) -> pd.DataFrame:
    """``other``, ``main``, ``concentration`` and ``categories`` of each sentence, by its id."""
    testset = results.testset(main, "id", "source", "target")
    sigs = {row["id"]: row["concentration"] for row in results.diagnostics(main, "sig")}
    columns = {
        "other": (results.place(other, SCORES), results.sentences(other, report.metric)),
        "main": (results.place(main, SCORES), results.sentences(main, report.metric)),
        "concentration": (diagnostics_file(results.root, main), pd.Series(sigs, dtype=float)),
    }
    ids = [row["id"] for row in testset]
    for path, values in columns.values():
        require_sentences(path, values.index, results.testset_path(main), ids)
    frame = pd.DataFrame({name: values.loc[ids] for name, (_, values) in columns.items()})
    pairs = ((row["source"], row["target"]) for row in testset)
    return frame.assign(categories=[categories_of(pair, main.direction, report.challenge) for pair in pairs])


def _compared(report: Categories, frame: pd.DataFrame) -> dict[str, float]:
    if frame.empty:
        return {"sentences": 0}
    test = asdict(paired_test(frame["other"], frame["main"], report.statistics))
    means: dict[str, Any] = {name: float(frame[name].mean()) for name in ("other", "main")}
    return {"sentences": len(frame), **means, **{name: test[name] for name in TESTED}}


def _spearman(frame: pd.DataFrame) -> dict[str, float]:
    import scipy.stats

    benefit = frame["other"] - frame["main"]
    if len(frame) < 3 or benefit.nunique() < 2 or frame["concentration"].nunique() < 2:
        return {"spearman_rho": float("nan"), "spearman_p": float("nan")}
    test = scipy.stats.spearmanr(frame["concentration"], benefit)
    return {"spearman_rho": float(test.statistic), "spearman_p": float(test.pvalue)}


# --- The layout.


def _category(report: Categories, name: str, values: Mapping[str, float]) -> Group:
    count, bold = f"{values['sentences']:.0f}", name == OVERALL
    texts = [count, *[formats.NONE] * 4]
    if values["sentences"]:
        p = formats.p_value(values["p_two_sided"], report.statistics.resamples)
        scores = [formats.number(values[name], report.metric.decimals) for name in ("other", "main")]
        texts = [count, *scores, formats.lead(values, report.metric), p]
    return Group(name.capitalize(), (TableRow(tuple(TableCell(text, bold) for text in texts)),))


def _correlation(difference: str, heading: str, numbers: Mapping[str, float]) -> Note:
    values = formats.signed(numbers["spearman_rho"], 4)
    if values != formats.NOT_AVAILABLE:
        values += f", two-sided p = {numbers['spearman_p']:.4f}, N = {numbers['sentences']:.0f}"
    return Note(f"Spearman's ρ of a sentence's SIG-Concentration and its {difference}: {values} ({heading}).")
