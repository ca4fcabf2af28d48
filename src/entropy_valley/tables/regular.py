"""The regular tables, each a short declaration: what its rows and columns are, see :mod:`pivot`.

The main table, all backbones, the whole matrix, and those of studies: step budgets, readings, a reproduction.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from entropy_valley.config import matrix
from entropy_valley.config.matrix import Cell, table_cells
from entropy_valley.config.paths import checkpoint_of
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.paper_numbers import deviation, find
from entropy_valley.tables import formats, notes, systems
from entropy_valley.tables.base import FigureReport, OfStudy, Report
from entropy_valley.tables.formats import RISING, ordered
from entropy_valley.tables.formats import direction as direction_label
from entropy_valley.tables.of_results import COSTED, means_over_runs, with_costs
from entropy_valley.tables.paired_tests import ZEROS
from entropy_valley.tables.pivot import At, Entry, Regular, Summary, pivot, placed
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Table, TableCell
from entropy_valley.tables.style import INK, METHOD_COLOURS, METHOD_MARKERS, ON_WHITE, SERIES_COLOURS, Panel
from entropy_valley.tables.systems import Systems

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- The main table.


class Main(Regular):
    """Length methods by direction, for the main backbone. Bold is the best that could be deployed; EV is shaded."""

    caption = (
        "Main table: {metrics} of the length methods for one backbone, mean and sample standard deviation over "
        "training seeds. Gap closure is (method − Ratio) / (Oracle − Ratio), run by run, over the paper's Fixed Ratio "
        "and over the same ratio with the EOS slot that EV and Oracle have. Oracle takes the reference's length."
    )

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return self.main_cells

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return self.main_metrics


# --- All backbones beside each other: scores of Oracle, Ratio and EV as a table, EV's gap closure as a figure.

METHODS = ("oracle", "ratio", "ratio_eos", "ev")  # those of these that the matrix has
SPAN = 0.8  # of the unit between two backbones that their bars fill


class AllBackbones(Report):
    """The cells of the main tables of all backbones, unless the matrix has just one."""

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return table_cells(self.experiment) if len(self.experiment.matrix.backbones) > 1 else []


class CrossBackbone(AllBackbones, Regular):
    """Scores in the main metric: a group per backbone, a row per direction. Its CSV has every metric."""

    caption = (
        "The length methods on every masked-diffusion backbone and direction, in {metric}, with EV's lead over Fixed "
        "Ratio and the share of Oracle's lead that it closes, also over Fixed Ratio with an EOS slot."
    )
    keys = (("metric",), "backbone", ("place",))
    bleu = False

    def entries(self, summary: Summary) -> list[Entry]:
        (metric,) = self.shown_metrics
        names = [name for name in METHODS if name in summary.methods]

        def lead(at: At) -> TableCell:
            return TableCell(formats.signed(summary.row(metric, at, method="ev").delta_ratio, metric.decimals))

        return [
            *self.scores(summary, metric, names, shaded="ev"),
            Entry(Column("EV − Ratio"), lead),
            *self.closures(summary, metric, method="ev", shaded=True),
        ]


class CrossBackboneBleu(CrossBackbone):
    """The same in sacreBLEU."""

    caption = CrossBackbone.caption.replace("{metric}", "sacreBLEU")

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return self.named_metrics("bleu")

    def numbers(self, results: Results) -> pd.DataFrame:
        return super().numbers(results).query("metric == 'bleu'")


class CrossBackboneFigure(AllBackbones, FigureReport):
    """Bars of EV's mean gap closure in per cent with deviations over runs; no gap to close prints n/a."""

    caption = (
        "Share of the {metric} gap between Fixed Ratio and Oracle that Entropy-Valley closes, by backbone and "
        'direction. Bars are standard deviations over training seeds; "n/a": Oracle does not lead Ratio in any run.'
    )

    def numbers(self, results: Results) -> pd.DataFrame:
        return super().numbers(results).query("method == 'ev'")

    def draw(self, numbers: pd.DataFrame, axes: Axes) -> None:
        rows = placed(numbers)
        backbones, series = (list(dict.fromkeys(rows[key])) for key in ("backbone", "place"))
        width = SPAN / len(series)
        for index, place in enumerate(series):
            offset = (index - (len(series) - 1) / 2) * width
            here = rows[[one == place for one in rows["place"]]]
            bars = {backbones.index(row.backbone) + offset: row for row in here.itertuples()}
            colour = SERIES_COLOURS[index % len(SERIES_COLOURS)]
            _bars(axes, dict(sorted(bars.items())), 0.92 * width, colour, self.place(*place))
        axes.margins(y=0.1)
        axes.axhline(0, color=INK, linewidth=0.7)
        axes.set_xticks(range(len(backbones)), list(map(self.backbone, backbones)))
        axes.set_xlim(-0.5, len(backbones) - 0.5)  # also of a backbone without a bar
        axes.set_ylabel(f"{self.metric.label} gap closed by EV (%)")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(series), handlelength=1)


def _bars(axes: Axes, bars: Mapping[float, Any], width: float, colour: str, label: str) -> None:
    """One direction's bars at their positions, each with its value or n/a."""
    means = [100 * row.gap_closure_mean for row in bars.values()]
    stds = [100 * row.gap_closure_std for row in bars.values()]
    axes.bar(list(bars), means, width, color=colour, label=label)
    axes.errorbar(list(bars), means, yerr=stds, fmt="none", ecolor=INK, elinewidth=0.9)
    for position, mean, std in zip(bars, means, stds, strict=True):
        text = formats.NOT_AVAILABLE if math.isnan(mean) else formats.minus(f"{mean:.1f}")
        height = 0.0 if math.isnan(mean) else max(0.0, mean + (0.0 if math.isnan(std) else std))
        axes.annotate(
            text, (position, height), (0, 3), textcoords="offset points", ha="center", fontsize=7, bbox=ON_WHITE
        )


# --- A matrix of several reveal orders or step budgets: each length method under each of them.

WITHIN = "Gap closure and bold compare the methods of one reveal order and one T."


class MatrixTable(Main):
    """All cells of the matrix: a section per backbone and order, a group per direction, in it the methods of each T."""

    caption = (
        "The whole matrix: {metrics} of every length method under every reveal order and step budget T, mean and "
        "sample standard deviation over training seeds. Gap closure is (method − Ratio) / (Oracle − Ratio) under the "
        "same order and T."
    )
    keys = (("backbone", "order"), "place", ("steps", "method"))

    @functools.cached_property
    def cells(self) -> list[Cell]:
        """None where the main tables show the only order and step budget."""
        several = len(self.experiment.matrix.orders) > 1 or len(self.experiment.matrix.steps) > 1
        return matrix.cells(self.experiment) if several else []

    def notes(self, results: Results, numbers: pd.DataFrame, summary: Summary) -> Sequence[str]:
        backbones, orders = map(self.backbone, summary.values("backbone")), map(self.order, summary.values("order"))
        setting = f"Backbones: {', '.join(backbones)}. Reveal orders: {'; '.join(orders)}. "
        setting += f"T = {', '.join(map(str, summary.values('steps')))}."
        return (setting, WITHIN, *notes.reading(self, results, numbers))


# --- A study of step budgets: Oracle, EV and Ratio at each T, and how much of the gap EV closes there.

COMPARED = ("oracle", "ev", "ratio")
BUDGETS = (
    "Gap closure: (EV − Ratio) / (Oracle − Ratio) in each run, n/a unless Oracle leads; then mean ± std.",
    "Bold: EV's mean is not below Oracle's, which knows the reference's length but decodes no better for it.",
    "L ≤ T: share of EV's canvases that have at most T slots; more steps than T leave them as they are.",
)


def not_ranked(numbers: pd.DataFrame) -> Summary:
    """A summary of which no score is bold."""
    return Summary(numbers, informed={*numbers["method"]})


class OfBudgets(OfStudy):
    """What table and figure share: the scores of a study at each step budget, with their costs."""

    caption = (
        "{metric} of Fixed Ratio, Entropy-Valley and Oracle length at each step budget T. More steps than slots leave "
        "a canvas as it is; the table gives the share of such canvases."
    )

    def numbers(self, results: Results) -> pd.DataFrame:
        return with_costs(super().numbers(results), results, self.cells)

    def summary(self, numbers: pd.DataFrame) -> Summary:
        return not_ranked(numbers.sort_values("steps", kind="stable"))


class Budgets(OfBudgets, Regular):
    """Oracle, EV and Ratio at each step budget: a group per direction, a row per T."""

    keys = ((), "place", ("steps",))

    def problems(self) -> Iterator[str]:
        yield from self.of_one_backbone()
        if len(orders := {cell.order for cell in self.cells}) > 1:
            yield f"the layout budgets is of one reveal order, not of {', '.join(sorted(orders))}"
        systems = {(cell.run, cell.steps, cell.method) for cell in self.cells}
        for name in matrix.COMPARED:
            if any((cell.run, cell.steps, name) not in systems for cell in self.cells):
                yield f"the layout budgets needs the method {name} at every T; add it"

    def entries(self, summary: Summary) -> list[Entry]:
        metric = self.metric

        def closure(at: At) -> TableCell:
            oracle, ev = (summary.row(metric, at, method=name) for name in ("oracle", "ev"))
            text = formats.closure(ev.gap_closure_mean, ev.gap_closure_std, ev.gap_closure_runs, ev.runs)
            return TableCell(text, bold=ev.gap_closure_runs > 0 and ev.mean >= oracle.mean)

        def within(at: At) -> TableCell:
            return TableCell(f"{100 * summary.row(metric, at, method='ev').within_steps:.1f}%")

        return [
            *self.scores(summary, metric, COMPARED, align="r", shaded="ev"),
            Entry(Column("Gap closure", align="r"), closure),
            Entry(Column("L ≤ T", align="r"), within),
        ]

    def notes(self, results: Results, numbers: pd.DataFrame, summary: Summary) -> Sequence[str]:
        cell = self.cells[0]
        whose = f"{self.backbone(cell.backbone)}, reveal order {self.order(cell.order)}"
        setting = f"{self.metric.label} at each step budget T; {whose}."
        return (setting, *notes.spread(numbers), *BUDGETS, *notes.doubtful_gaps(self, results, ["ratio"]))


class BudgetsFigure(OfBudgets, FigureReport):
    """A panel for each direction: lines of means with deviations over runs, T on a logarithmic axis."""

    width, height = 2.1, 2.2

    def panels(self, numbers: pd.DataFrame) -> Sequence[Panel]:
        summary = self.summary(numbers)
        places = enumerate(summary.values("place"))
        return [functools.partial(_budgets, self, summary, place, not number) for number, place in places]


def _budgets(report: BudgetsFigure, summary: Summary, place: tuple[str, str], first: bool, axes: Axes) -> None:
    budgets, metric = summary.values("steps"), report.metric
    for name in RISING:
        rows = [summary.row(metric, {"place": place, "steps": steps, "method": name}) for steps in budgets]
        axes.errorbar(
            budgets, [row.mean for row in rows],
            yerr=[row.std for row in rows] if any(row.runs > 1 for row in rows) else None,
            color=METHOD_COLOURS[name], marker=METHOD_MARKERS[name], markersize=4, label=report.method(name).short,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(budgets, list(map(str, budgets)), fontsize=7)
    axes.minorticks_off()
    axes.set_xlabel("denoising steps T")
    axes.set_title(report.place(*place))
    if first:
        axes.set_ylabel(metric.label)
        axes.legend(  # below the panel: within it, it would lie over a line
            loc="upper center", bbox_to_anchor=(0.4, -0.3), ncols=len(RISING), fontsize=7, handlelength=1.2,
            columnspacing=1,
        )  # fmt: skip


# --- A study of readings: a row for each variant of a backbone, what all its systems score, and what has changed.


class Readings(OfStudy, Regular):
    """A section for each direction, a row for each backbone, the methods beside each other."""

    caption = (
        "One system under several readings of the paper: {metric} of each length method, and BLEU, gap closures and "
        "changed sentences of one of them. Oracle takes the reference's length. The CSV has all numbers of all methods."
    )
    keys = (("place",), "backbone", ())
    titles: ClassVar = {"backbone": Column("Readings", align="l")}
    recorded = ("origins",)

    @functools.cached_property
    def origins(self) -> dict[str, str]:
        """The backbone that each one is a variant of."""
        return {name: checkpoint_of(self.experiment, name) for name in {cell.backbone: None for cell in self.cells}}

    def problems(self) -> Iterator[str]:
        yield from self.of_one_setting()
        yield from self.of_methods("oracle", "ratio", self.study.against)
        for cell in self.cells:
            origin = self.origins[cell.backbone]
            if not self.partners([cell], backbone=origin):
                yield f"{cell.backbone!r} is compared with {origin!r}, which has no seed {cell.seed} here; add it"

    def numbers(self, results: Results) -> pd.DataFrame:
        """The summary of :func:`summarise`, with ``changed``: the share of sentences whose score in the main metric is
        not that under the readings of the backbone's origin, in the same system; the mean over runs. NaN for the
        origins, and for other metrics."""
        changed = means_over_runs(self.cells, lambda cell: {"changed": self._changed(results, cell)})
        return super().numbers(results).merge(changed.assign(metric=self.metric.name), "left", on=[*COSTED, "metric"])

    def _changed(self, results: Results, cell: Cell) -> float:
        if (origin := self.origins[cell.backbone]) == cell.backbone:
            return math.nan
        systems = (cell, *self.partners([cell], backbone=origin))
        scores, others = (results.sentences(one, self.metric) for one in systems)
        return float((scores != others.reindex(scores.index)).mean())

    def entries(self, summary: Summary) -> list[Entry]:
        against, (metric, *others) = self.study.against, self.shown_metrics

        def changed(at: At) -> TableCell:
            share = summary.row(metric, at, method=against).changed
            return TableCell(formats.NONE if pd.isna(share) else formats.percent(share))

        entries = [*self.scores(summary, metric, summary.methods, metric.label)]
        for other in others:
            entries += self.scores(summary, other, [against], other.label)
        return [
            *entries,
            *self.closures(summary, metric, method=against),
            Entry(Column("Changed", align="r"), changed),
        ]

    def summary(self, numbers: pd.DataFrame) -> Summary:
        return not_ranked(numbers)

    def notes(self, results: Results, numbers: pd.DataFrame, summary: Summary) -> Sequence[str]:
        against, cell = self.method(self.study.against).short, self.cells[0]
        lines = (
            f"Reveal order {self.order(cell.order)}, T = {cell.steps}. Closures and changes: of {against}.",
            f"Changed: sentences with another {self.metric.label} than under the readings of the first row of the "
            "backbone, mean over runs.",
            *(systems.note(self, name) for name, _ in zip(systems.CLOSURES, summary.baselines, strict=False)),
        )
        return (*lines, *notes.spread(numbers), *notes.doubtful_gaps(self, results))


# --- A study's systems beside what the paper prints for LLaDA-8B-Base: the check of a reproduction.

PUBLISHED = {"comet22": "comet", "bleu": "bleu"}  # our metrics as the transcription calls them
PRINTED = ["paper_mean", "paper_std", "paper_gap_closure_mean", "paper_gap_closure_std"]
TITLES = ("Here", "Paper", "Difference", "Closure here", "Closure in the paper")
REPRODUCTION = (
    "Paper: means over three runs of LLaDA-8B-Base on all 2,037 sentences; – where the paper has no such number.",
    "Difference: here minus the paper's mean.",
    (
        "Slots: mean over sentences of the canvas, the EOS slot included. The paper's is of Fixed ratio in another run "
        "(its slots over its calls): it says whether the paper's Ratio has that slot."
    ),
)


class Reproduction(OfStudy, Regular):
    """A group for each direction, a row for each method, ours and the paper's number side by side."""

    caption = (
        "{metric} and BLEU here beside those that the paper prints for LLaDA-8B-Base. Oracle takes the reference's "
        "length."
    )
    texts = True

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        return self.main_metrics

    def problems(self) -> Iterator[str]:
        yield from self.of_one_backbone()
        yield from self.of_one_setting()

    def numbers(self, results: Results) -> pd.DataFrame:
        """The summary of :func:`summarise`, with ``paper_mean``, ``paper_std``, ``difference`` (ours minus the
        paper's), ``paper_gap_closure_mean``, ``paper_gap_closure_std``, and the mean slots of a canvas, ``canvas`` and
        ``paper_canvas``; NaN where the paper has no such number."""
        summary = super().numbers(results).merge(self._canvases(results), on=list(COSTED))
        keys = summary[["metric", "direction", "method"]].itertuples(index=False, name=None)
        summary[PRINTED] = [published(*key) for key in keys]
        summary["difference"] = summary["mean"] - summary["paper_mean"]
        return summary

    def _canvases(self, results: Results) -> pd.DataFrame:
        """The mean slots of a canvas of each method, over sentences and runs, ours and the paper's."""

        def canvases(cell: Cell) -> dict[str, float]:
            lengths = pd.Series([row["length"] for row in results.translations(cell, "length")])
            return {"canvas": lengths.mean(), "paper_canvas": papers_canvas(cell.direction, cell.method)}

        return means_over_runs(self.cells, canvases)

    def label(self, key: str, at: At) -> TableCell:
        return dataclasses.replace(super().label(key, at), bold=False)

    def entries(self, summary: Summary) -> list[Entry]:
        def printed(at: At, metric: Metric, title: str) -> TableCell:
            """A number that there is, or a dash."""
            row, decimals = summary.row(metric, at), metric.decimals
            text = {
                "Paper": formats.mean_std(row.paper_mean, row.paper_std, decimals),
                "Difference": formats.signed(row.difference, decimals),
                "Closure in the paper": formats.percent(row.paper_gap_closure_mean, row.paper_gap_closure_std),
                "canvas": formats.number(row.canvas, 2),
                "paper_canvas": formats.number(row.paper_canvas, 2),
            }[title]
            return TableCell(formats.NONE if text == formats.NOT_AVAILABLE else text)

        entries = []
        for title, name in (("Here", "canvas"), ("Paper", "paper_canvas")):
            slots = functools.partial(printed, metric=self.shown_metrics[0], title=name)
            entries.append(Entry(Column(title, "Slots"), slots))
        for metric in self.shown_metrics:
            cells = {title: functools.partial(printed, metric=metric, title=title) for title in TITLES}
            cells |= {"Here": functools.partial(summary.score, metric)}
            cells |= {"Closure here": functools.partial(summary.closure, metric)}
            entries += [Entry(Column(title, metric.label), cells[title]) for title in TITLES]
        return entries

    def notes(self, results: Results, numbers: pd.DataFrame, summary: Summary) -> Sequence[str]:
        return (notes.setting(self), *REPRODUCTION, *notes.reading(self, results, numbers))


def published(metric: str, direction: str, method: str) -> list[float]:
    """The main table's mean and deviation over runs, and those of the gap closure (shares); NaN where it has none."""
    values = []
    for name in ("", "_closure"):
        printed = find("tab:main", f"{PUBLISHED.get(metric)}{name}", direction=direction, system=method)
        std = deviation(printed) if printed else None
        values += [number.value / number.scale if number else float("nan") for number in (printed, std)]
    return values


def papers_canvas(direction: str, method: str) -> float:
    """Mean slots of Fixed ratio's canvas in `tab:direct_length_baselines`; NaN for any other method, whose calls are of
    several canvases."""
    named = {"label": "tab:direct_length_baselines", "direction": direction, "system": "ratio"}
    slots, calls = (find(metric=metric, **named) for metric in ("slots", "calls"))
    return slots.value / calls.value if slots and calls and method == "ratio" else math.nan


# --- A study of several test sets and pools of training pairs: scores by method, EV's lead and its tests.


class Transfer(Systems):
    """A section for each backbone and direction, a group for each test set, a row for each pool and seed. Its numbers
    are those of :mod:`systems`."""

    caption = (
        "{metric} of each length method by evaluation set and pool of training pairs, then Entropy-Valley minus Fixed "
        "ratio, sentence by sentence, with its 95 % confidence interval and two paired tests. Oracle takes the "
        "reference's length."
    )

    @property
    def against(self) -> tuple[str, str, int]:
        """Under the reveal order and the T that all of its systems have."""
        return self.study.against, self.cells[0].order, self.cells[0].steps

    def problems(self) -> Iterator[str]:
        yield from self.of_one_setting()
        yield from self.of_methods("ratio", self.study.against)
        if self.study.against == "ratio":
            yield f"{self._layout} compares `against` with ratio, but `against` is ratio itself; name another method"

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        runs = numbers[numbers["statistic"] == "run"]
        runs = runs.fillna({"pool": ""}) if "pool" in runs else runs.assign(pool="")
        methods, metric = ordered(runs["method"]), self.metric
        deployable = [name for name in methods if name not in self.informed]

        def cells(at: At, of_run: pd.DataFrame) -> list[str | TableCell]:
            """Scores by method, the best that could be deployed bold; and the lead over Fixed Ratio with its tests."""
            rows = of_run.set_index("method").to_dict("index")
            best = max(rows[name][systems.MAIN] for name in deployable)
            scores = {name: rows[name][systems.MAIN] for name in methods}
            test = rows["ratio"]
            return [
                *(
                    TableCell(formats.number(score, metric.decimals), bold=name in deployable and score == best)
                    for name, score in scores.items()
                ),
                formats.interval(test["lead"], test["ci_low"], test["ci_high"], metric.decimals),
                formats.p_value(test["p_two_sided"], self.statistics.resamples),
                formats.small_p(test["wilcoxon_p"]),
            ]

        columns = (
            *(Column("Evaluation set", align="l"), Column("Pool", align="r"), Column("Seed", align="r")),
            *(Column(self.method(name).short, metric.label) for name in methods),
            Column(f"{self.method(self.study.against).short} − {self.method('ratio').short} [95 % CI]"),
            *(Column("p"), Column("Wilcoxon's p")),
        )
        _, order, steps = self.against
        how = (
            f"Reveal order {self.order(order)}, T = {steps}; a row is one run. Bold: the best that sees no reference.",
            "Tests of the difference, both two-sided: p, paired bootstrap over sentences; Wilcoxon's signed-rank test "
            f"{ZEROS[self.statistics.wilcoxon_zeros]}. The CSV has the other scores, costs and gap closures.",
        )
        sections = pivot(runs, (("backbone", "direction"), "testset", ("pool", "seed")), cells, self.label)
        return Table(columns, sections, (*how, *notes.doubtful_gaps(self, results, ["ratio"])))

    def label(self, key: str, at: At) -> TableCell:
        texts = {
            "backbone": self.backbone,
            "direction": direction_label,
            "pool": lambda pool: pool or formats.NONE,
            "seed": lambda seed: f"{seed:.0f}",
        }
        return TableCell(texts.get(key, str)(at[key]))
