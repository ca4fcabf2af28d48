"""Studies of reveal orders on the same canvases: how far scores lie apart, and two orders by what a source contains."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, ClassVar

import pandas as pd

from entropy_valley.config.matrix import Cell
from entropy_valley.config.methods import order_settings, source_guided
from entropy_valley.data.categories import CATEGORIES, ChallengeRules, categories_of, refused
from entropy_valley.errors import InputError
from entropy_valley.stats.significance import BOOTSTRAP, paired_test
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import OfStudy, TableReport
from entropy_valley.tables.of_results import by_run, compare_means, per_sentence
from entropy_valley.tables.pivot import by_key
from entropy_valley.tables.reader import Results, diagnostics_file, testset_file
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableSection

RUN = ("backbone", "direction", "testset", "steps", "seed")
SYSTEM = attrgetter("method", "order")
FIXED = "oracle"  # the length method under which orders are compared
DELTA = "Δ: mean difference over sentences, percentile bootstrap; p two-sided, not corrected for the number of tests."
Numbers = Mapping[str, float]
Systems = Mapping[tuple[str, str], Cell]  # of a run, by method and order

# --- Scores of all orders, lead over the main one, cost; then how far they span.

COSTS = ("sentences", "calls", "slots", "passes")  # per sentence, but for their number


class Orders(OfStudy, TableReport):
    """Reveal orders on canvases of the reference's length, and how far they lie apart; a block for each run."""

    caption = (
        "Reveal orders on canvases of the reference's length, each tested against MED, sentence by sentence, in each "
        "run by itself. The last rows say how far the orders lie apart, and how that compares with what the choice of "
        "the length is worth."
    )
    recorded: ClassVar[Sequence[str]] = ("main", "orders")

    @property
    def main(self) -> str:
        """The order that the others are tested against."""
        return self.experiment.tables.order

    @functools.cached_property
    def orders(self) -> dict[str, dict[str, Any]]:
        """The orders of its cells, the main one first: class, settings, and whether the source guides it."""
        described = {}
        for name in dict.fromkeys([self.main, *(cell.order for cell in self.cells)]):
            section, guided = order_settings(self.experiment, name), source_guided(self.experiment, name)
            order, settings = section["order"], section["order_settings"]
            described[name] = {"order": order, "settings": settings, "source_guided": guided}
        return described

    def is_guided(self, order: str) -> bool:
        """Whether the source guides an order."""
        return self.orders[order]["source_guided"]

    def problems(self) -> Iterator[str]:
        if self.main not in {cell.order for cell in self.cells if cell.method == FIXED}:
            yield f"the layout {self.study.layout} needs the method {FIXED} and the order {self.main}; add both"

    def fixed(self, systems: Systems, order: str) -> Cell:
        """A run's cell of an order under Oracle's lengths."""
        if (FIXED, order) not in systems:
            problem = f"its run has no cell of {FIXED} and {order}"
            raise InputError(next(iter(systems.values())).name, problem, "Add both to the study.")
        return systems[FIXED, order]

    def numbers(self, results: Results) -> pd.DataFrame:
        """The tidy numbers: the columns of RUN, ``method``, ``order``, ``metric``, ``value``.

        Of each cell: the system scores, ``sentences``, and calls, slots and passes per sentence; of an order under
        Oracle's lengths also the paired test of its main score against the main order's. Of each run (method and order
        ""): ``source_guided_span``, the range of main scores over the orders guided by the source, as in the paper,
        ``main_and_guided_span`` with the main order, ``span`` over all; ``length_span``, the range over the length
        methods under the main order; and, where their cells are there, ``oracle_ratio`` and ``ev_ratio``, their
        differences under the main order, each also over the first of these spans, as ``oracle_ratio_over_span``. NaN
        where that is 0, or no order is guided by the source.
        """
        rows = []
        for run, systems in by_run(self.cells, RUN, SYSTEM).items():
            numbers: dict[tuple[str, str], dict[str, float]] = {}
            for system, cell in systems.items():
                cost, scores = per_sentence(results, cell), results.system_scores(cell, self.metrics)
                numbers[system] = scores | {name: cost[name] for name in COSTS}
                if cell.method == FIXED and cell.order != self.main:
                    main = [self.fixed(systems, self.main)]
                    test = compare_means(results, [cell], main, self.metric, self.statistics)
                    numbers[system] |= {name: getattr(test, name) for name in BOOTSTRAP}
            numbers["", ""] = self._spans(numbers)
            rows += [(*run, *system, *item) for system, values in numbers.items() for item in values.items()]
        return pd.DataFrame(rows, columns=[*RUN, "method", "order", "metric", "value"])

    def _spans(self, numbers: Mapping[tuple[str, str], Numbers]) -> dict[str, float]:
        scores = {system: values[self.metric.name] for system, values in numbers.items()}
        orders = {order: score for (name, order), score in scores.items() if name == FIXED}
        lengths = {name: score for (name, order), score in scores.items() if order == self.main}
        guided = [score for order, score in orders.items() if self.is_guided(order)]
        span = _range(guided)
        spans = {"source_guided_span": span, "main_and_guided_span": _range([*guided, orders[self.main]])}
        spans |= {"span": _range(list(orders.values())), "length_span": _range(list(lengths.values()))}
        for name in (FIXED, "ev"):
            if {name, "ratio"} <= lengths.keys():
                lead = lengths[name] - lengths["ratio"]
                spans |= {f"{name}_ratio": lead, f"{name}_ratio_over_span": lead / span if span else float("nan")}
        return spans

    def run_heading(self, key: Sequence[str | int], sentences: float) -> str:
        """Backbone, direction, T, seed and number of sentences of a run."""
        backbone, direction, testset, steps, seed = key
        place = f"{self.backbone(str(backbone))}, {self.place(str(direction), str(testset))}"
        return f"{place}, T = {steps}, training seed {seed}, N = {sentences:.0f}"

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        """For each run the main order and those guided by the source, the controls, and the spans."""
        main = self.order(self.main)
        metrics = [metric.label for metric in self.shown_metrics]
        titles = (*metrics, f"Δ vs {main} [95 % CI]", "p", "Calls", "Slots", "Passes")
        runs = numbers.groupby(list(RUN), sort=False)
        sections = [section for key, group in runs for section in self._sections(key, group)]
        return Table((Column("Schedule", align="l"), *map(Column, titles)), sections, list(self._notes(main)))

    def _sections(self, key: Sequence[str | int], group: pd.DataFrame) -> Iterator[TableSection]:
        systems = by_key(group, "method", "order")
        orders = {order: values for (name, order), values in systems.items() if name == FIXED}
        rows = {order: self._row(order, values) for order, values in orders.items()}
        others = [order for order in orders if order != self.main]
        guided = [rows[order] for order in others if self.is_guided(order)]
        controls = [rows[order] for order in others if not self.is_guided(order)]
        heading = self.run_heading(key, orders[self.main]["sentences"])
        yield TableSection([rows[self.main], *guided], heading)
        if controls:
            yield TableSection(controls, "Additional controls")
        if spans := list(self._span_rows(systems["", ""])):
            yield TableSection(spans)

    def _row(self, order: str, values: Numbers) -> Group:
        lead, p = formats.NONE, formats.NONE
        if "delta" in values:
            lead = formats.lead(values, self.metric)
            p = formats.p_value(values["p_two_sided"], self.statistics.resamples)
        scores = (formats.number(values[metric.name], metric.decimals) for metric in self.shown_metrics)
        return _group(self.order(order), (*scores, lead, p, *(f"{values[key]:.2f}" for key in COSTS[1:])))

    def _span_rows(self, numbers: Numbers) -> Iterator[Group]:
        decimals = self.metric.decimals
        if not pd.isna(numbers["source_guided_span"]):
            yield _group("Source-guided span (max − min)", [formats.number(numbers["source_guided_span"], decimals)])
            label = f"The same with {self.order(self.main)}"
            yield _group(label, [formats.number(numbers["main_and_guided_span"], decimals)])
        for name in (FIXED, "ev"):
            if f"{name}_ratio" in numbers:
                over = numbers[f"{name}_ratio_over_span"]
                times = formats.NONE if pd.isna(over) else f"{formats.minus(f'{over:.1f}')}× the span"
                lead = formats.signed(numbers[f"{name}_ratio"], decimals)
                yield _group(f"{self.method(name).short} − {self.method('ratio').short}", (lead, formats.NONE, times))

    def _notes(self, main: str) -> Iterator[str]:
        yield "Schedules: the canvas has the reference's length, and as many slots are revealed at each step."
        yield DELTA
        if any(map(self.is_guided, self.orders)):
            yield f"Span: over the schedules by the source (those with SIG), and below with {main}."
        yield (
            "Calls and slots: forward passes per sentence, as the paper counts them, and the canvas slots in these; a "
            "step that looks at the SIG is two. Passes: those really needed."
        )


def _range(scores: Sequence[float]) -> float:
    return max(scores) - min(scores) if scores else float("nan")


def _group(label: str, texts: Sequence[str]) -> Group:
    """A row of its own; what is not said is a dash."""
    return Group.of(label, [*texts, *[formats.NONE] * (7 - len(texts))])


# --- Two orders on a challenge subset: a row for each category of the source, and all together.

OVERALL = "overall"
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
    reads = (testset_file, diagnostics_file)

    @property
    def challenge(self) -> ChallengeRules:
        """How a sentence's categories are read."""
        return self.experiment.corpus.challenge

    @property
    def other(self) -> str:
        """The order that is compared with the main one."""
        return next(name for name in self.orders if name != self.main)

    def problems(self) -> Iterator[str]:
        listed = [*super().problems()]
        if not listed and len({cell.order for cell in self.cells if cell.method == FIXED}) != 2:
            listed = [f"the layout categories compares {self.main} with one other order; name two"]
        yield from listed
        for direction in dict.fromkeys(cell.direction for cell in self.cells):
            if problem := refused(direction, self.challenge):
                yield f"{problem}; name other directions, or see `corpus.challenge`"

    def numbers(self, results: Results) -> pd.DataFrame:
        """The tidy numbers by category and for the whole subset (:data:`OVERALL`): the columns of RUN, ``category``,
        ``metric``, ``value``.

        Of each: ``sentences``, ``other`` and ``main``, the mean sentence score of the two orders, and the paired test
        of their difference; of a category without sentences only that there are none. Of the whole also
        ``spearman_rho`` and ``spearman_p`` (two-sided), of the SIG-Concentration with the other order's lead over the
        main one; NaN where either is constant. A run is tested by itself. Raises InputError where files are not of the
        same sentences.
        """
        rows = []
        for run, systems in by_run(self.cells, RUN, SYSTEM).items():
            frame = self._sentences(results, self.fixed(systems, self.other), self.fixed(systems, self.main))
            parts = {name: frame[[name in listed for listed in frame["categories"]]] for name in CATEGORIES}
            values = {name: self._compared(part) for name, part in parts.items()}
            values[OVERALL] = self._compared(frame) | _spearman(frame)
            rows += [(*run, name, *item) for name, numbers in values.items() for item in numbers.items()]
        return pd.DataFrame(rows, columns=[*RUN, "category", "metric", "value"])

    def _sentences(self, results: Results, other: Cell, main: Cell) -> pd.DataFrame:
        """``other``, ``main``, ``concentration`` and ``categories`` of each sentence, by its id."""
        testset = results.testset(main, "source", "target")
        sigs = {row["id"]: row["concentration"] for row in results.diagnostics(main, "sig")}
        ids = results.require_sentences(main, diagnostics_file(results.root, main), sigs)
        columns = {
            "other": results.sentences(other, self.metric),
            "main": results.sentences(main, self.metric),
            "concentration": pd.Series(sigs, dtype=float),
            "categories": pd.Series(
                {
                    row["id"]: categories_of((row["source"], row["target"]), main.direction, self.challenge)
                    for row in testset
                }
            ),
        }
        return pd.DataFrame(columns).loc[list(ids)]

    def _compared(self, frame: pd.DataFrame) -> dict[str, float]:
        if frame.empty:
            return {"sentences": 0}
        test = asdict(paired_test(frame["other"], frame["main"], self.statistics))
        means = {name: float(frame[name].mean()) for name in ("other", "main")}
        return {"sentences": len(frame), **means, **{name: test[name] for name in BOOTSTRAP}}

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        other, main = self.order(self.other), self.order(self.main)
        sections, correlations = [], []
        for key, group in numbers.groupby(list(RUN), sort=False):
            values = {name: numbers for (name,), numbers in by_key(group, "category").items()}
            heading = self.run_heading(key, values[OVERALL]["sentences"])
            rows = {name: self._category(name, numbers) for name, numbers in values.items()}
            whole = TableSection([rows.pop(OVERALL)])
            sections += [TableSection(list(rows.values()), heading), whole]
            correlations.append(_correlation(f"{other} − {main}", heading, values[OVERALL]))
        scores = (f"{self.metric.label} {name}" for name in (other, main))
        columns = (
            Column("Category", align="l"),
            Column("N", align="r"),
            *map(Column, (*scores, f"Δ ({other} − {main}) [95 % CI]", "p")),
        )
        few = notes.few_sentences(numbers.loc[numbers["metric"] == "sentences", "value"])
        canvas = "The canvas has the reference's length. A sentence may be in several categories of its source."
        concentration = CONCENTRATIONS[self.experiment.sig_concentration.measure]
        return Table(columns, sections, (canvas, DELTA, *few, concentration, *correlations))

    def _category(self, name: str, values: Numbers) -> Group:
        texts = [f"{values['sentences']:.0f}", *[formats.NONE] * 4]
        if values["sentences"]:
            scores = [formats.number(values[order], self.metric.decimals) for order in ("other", "main")]
            p = formats.p_value(values["p_two_sided"], self.statistics.resamples)
            texts[1:] = [*scores, formats.lead(values, self.metric), p]
        return Group.of(name.capitalize(), (TableCell(text, bold=name == OVERALL) for text in texts))


def _spearman(frame: pd.DataFrame) -> dict[str, float]:
    import scipy.stats

    benefit = frame["other"] - frame["main"]
    if len(frame) < 3 or benefit.nunique() < 2 or frame["concentration"].nunique() < 2:
        return {"spearman_rho": float("nan"), "spearman_p": float("nan")}
    test = scipy.stats.spearmanr(frame["concentration"], benefit)
    return {"spearman_rho": float(test.statistic), "spearman_p": float(test.pvalue)}


def _correlation(difference: str, heading: str, numbers: Numbers) -> str:
    values = formats.signed(numbers["spearman_rho"], 4)
    if values != formats.NOT_AVAILABLE:
        values += f", two-sided p = {formats.small_p(numbers['spearman_p'])}, N = {numbers['sentences']:.0f}"
    return f"Spearman's ρ of a sentence's SIG-Concentration and its {difference}: {values} ({heading})."
