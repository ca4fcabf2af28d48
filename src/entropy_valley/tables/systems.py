"""The table and the figure of a study: a row for each system, its columns named in the config."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pandas as pd

from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell
from entropy_valley.config.methods import base_method, grid, is_ratio_without_slot, reassigned_methods
from entropy_valley.config.schema import metrics_of
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.summary import BASELINES
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import FigureReport, OfStudy, TableReport
from entropy_valley.tables.formats import METHODS, closure_title, ordered
from entropy_valley.tables.of_results import (
    closure_limits,
    compare_means,
    gap_closures,
    is_doubtful,
    per_sentence,
    with_costs,
)
from entropy_valley.tables.pivot import best
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableSection
from entropy_valley.tables.style import METHOD_COLOURS, METHOD_MARKERS, SERIES_COLOURS, Panel, faint
from entropy_valley.texts import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- The table of a study: a section for each backbone and direction, a row for each system, the columns it asks for.


RUN = ("backbone", "direction", "testset", "pool", "seed")
SYSTEM = ("method", "order", "steps")
PLACE = tuple(key for key in RUN if key != "seed")
MAIN = "comet"  # the column of the main metric; the others have their names
MAE = Metric("mae", "MAE", 2, segments=False, higher_is_better=False)
COUNTED = ("calls", "slots", "passes")  # per sentence
TIMED = {"latency": "single", "latency_batched": "batched"}  # of a latency, where a column has it
CLOSURES = ("closure", "closure_eos")  # over each of BASELINES
TOKENS, CHANGED, DIFFERENCE, LIMITS = "tokens", "changed", "difference", "closure_interval"  # where a column has it
DIFFERENCES = {  # of two systems' mean scores over runs, by the names of their paired test
    "delta": "difference", "ci_low": "difference_low", "ci_high": "difference_high", "p_two_sided": "difference_p",
}  # fmt: skip
BEST = "closure_best"  # over the best of the run's fixed ratios
TESTED = ("lead", "ci_low", "ci_high", "p_one_sided", "p_two_sided", "wilcoxon_p")


class Systems(OfStudy, TableReport):
    """Systems beside each other: a section for each backbone and direction, a row for each system, the columns that
    the study asks for. Bold are the best scores, and the lowest MAE, of the systems that could be deployed."""

    caption = (
        "Systems beside each other, as a study of the config names them: scores, costs and the lead of one system "
        "over each of the others, sentence by sentence. Oracle takes the reference's length. The CSV has every run."
    )
    texts = tells_pools = True
    recorded = ("columns", "against", "fixed")

    @property
    def columns(self) -> list[str]:
        """The names of the columns that the study asks for."""
        return self.study.columns

    @property
    def against(self) -> tuple[str, str, int]:
        """The system whose lead over the others is tested: its method, order and T."""
        return self.study.against, self.experiment.tables.order, self.experiment.tables.steps

    @functools.cached_property
    def fixed(self) -> list[str]:
        """The fixed ratios without a slot for the EOS."""
        methods = dict.fromkeys(cell.method for cell in self.cells)
        return [name for name in methods if is_ratio_without_slot(self.experiment, name)]

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        metrics = metrics_by_column(self.metrics)
        names = dict.fromkeys(metrics[name].name for name in (MAIN, "bleu", *self.columns) if name in metrics)
        return self.named_metrics(*names)

    @property
    def timed(self) -> bool:
        """Whether a column has measured seconds."""
        return bool(TIMED.keys() & set(self.columns))

    def inputs(self) -> list[str]:
        timed = [cell.latency(self.experiment.results) for cell in self.cells] if self.timed else []
        return [*super().inputs(), *timed]

    def problems(self) -> Iterator[str]:
        """A method that deals another's canvases has nothing to time by itself."""
        timed = {cell.method for cell in self.cells} if self.timed else set()
        for name in reassigned_methods(self.experiment):
            if name in timed:
                yield f"method {name!r} takes another's canvases and has no latency; remove it, or that column"

    # The numbers.

    def numbers(self, results: Results) -> pd.DataFrame:
        """One row per system and run, then its mean and sample standard deviation over runs (column ``statistic``).

        Columns: those of RUN, ``pool`` only where a run has one, and SYSTEM; ``comet``, the main metric, and the others
        by their names; ``mae``, the mean absolute error of the canvas length in slots; ``calls``, ``slots`` and
        ``passes`` per sentence; ``untouched``, the share of canvases that no larger T could change; ``cost``, calls
        over Fixed Ratio's; CLOSURES, and where a column has it BEST, over the best of the ratios that ``fixed`` names;
        those of TESTED for the system ``against`` (method, order, T) minus the system, sentence by sentence in the main
        metric; and where a column has it, ``tokens`` of all passes per sentence,
        ``changed``, the share of sentences whose text is not that of the first backbone with the same system,
        the values of DIFFERENCES from that backbone and :func:`closure_limits`, of a run, or of the mean of runs, and
        ``latency`` and ``latency_batched``, medians of measured seconds per sentence: one at a time, and all together.
        What a study has no systems for is NaN. Seeds are never pooled: tests are of single runs.
        """
        runs = pd.DataFrame([self._run(results, cell) | self._intervals(results, [cell]) for cell in self.cells])
        groups = runs.groupby([*PLACE, *SYSTEM], sort=False, dropna=False)
        numbers = [name for name in runs if name not in (*RUN, *SYSTEM)]
        statistics = {"mean": groups[numbers].mean(), "std": groups[numbers].std()}
        of_systems: dict[Any, list[Cell]] = {}
        for cell in self.cells:
            of_systems.setdefault(attrgetter(*PLACE, *SYSTEM)(cell), []).append(cell)
        intervals = pd.DataFrame([self._intervals(results, cells) for cells in of_systems.values()])
        for frame in statistics.values():
            frame[[*TESTED[1:], *intervals]] = math.nan  # limits and p-values are of single runs
            frame["runs"] = groups.size()
        statistics["mean"][[*intervals]] = intervals.to_numpy()
        named = [frame.reset_index().assign(statistic=name) for name, frame in statistics.items()]
        whole = pd.concat([runs.assign(statistic="run", runs=1), *named], ignore_index=True)
        pools = any(cell.pool for cell in self.cells)
        place = [name for name in PLACE if pools or name != "pool"]
        return whole[[*place, *SYSTEM, "statistic", "seed", "runs", *numbers]]

    def others(self, cells: Sequence[Cell], **other: Any) -> list[Cell]:
        """The partners of cells; none where there are none, or they are these cells themselves."""
        partners = self.partners(cells, **other)
        return [] if partners == cells else partners

    def _run(self, results: Results, cell: Cell) -> dict[str, Any]:
        """The numbers of a system in one run."""
        cost = per_sentence(results, cell, ["run_tokens"] if TOKENS in self.columns else [])
        scores = results.system_scores(cell, self.metrics)
        row = {key: getattr(cell, key) for key in (*RUN, *SYSTEM)}
        row |= {column: scores[metric.name] for column, metric in metrics_by_column(self.metrics).items()}
        row |= {"mae": cost["length_mae"], **{name: cost[name] for name in COUNTED}}
        row |= {"untouched": cost["within_steps"], "sentences": cost["sentences"]}
        if TOKENS in self.columns:
            row[TOKENS] = cost["run_tokens"]
        if self.timed:
            measured = results.latency(cell)
            row |= {name: measured[kind]["seconds_per_sentence"] for name, kind in TIMED.items()}
        if CHANGED in self.columns:
            row[CHANGED] = self._changed(results, cell)
        return row | self._gaps(results, cell) | self._test(results, cell)

    def _changed(self, results: Results, cell: Cell) -> float:
        """The share of texts that are not those of the first backbone in the same system and run; NaN where there is
        none, and for that backbone itself."""
        others = self.others([cell], backbone=self.cells[0].backbone)
        if not others:
            return math.nan
        own, texts = ({row["id"]: row["hypothesis"] for row in results.translations(one)} for one in (cell, *others))
        return sum(text != texts[name] for name, text in own.items()) / len(own)

    def _gaps(self, results: Results, cell: Cell) -> dict[str, float]:
        """Closure and cost, by Ratio and Oracle under the system's own order and T, or else under the main table's."""

        def score(one: Cell) -> float:
            return results.system_scores(one, [self.metric])[self.metric.name]

        columns = [*CLOSURES, *[BEST] * (BEST in self.columns)]
        values = dict.fromkeys((*columns, "cost"), math.nan)
        for order, steps in (self.against[1:], (cell.order, cell.steps)):  # its own setting comes last, and wins
            rivals = {
                name: self.partners([cell], method=name, order=order, steps=steps)
                for name in ("oracle", *BASELINES, *self.fixed)
            }
            ratios = [one for name in self.fixed for one in rivals[name]]
            best_ratio = [max(ratios, key=score)] if ratios else []
            for column, rival in zip(columns, (*(rivals[name] for name in BASELINES), best_ratio), strict=False):
                if (oracle := rivals["oracle"]) and rival:
                    doubtful = is_doubtful(results, oracle[0], rival[0], self.metric)
                    scores = ([score(one)] for one in (cell, *rival, *oracle))
                    values[column] = math.nan if doubtful else gap_closures(*scores)[0]
                    if column == CLOSURES[0]:
                        calls, of_rival = (per_sentence(results, one)["calls"] for one in (cell, *rival))
                        values["cost"] = calls / of_rival
        return values

    def _test(self, results: Results, cell: Cell) -> dict[str, float]:
        """The system ``against`` minus this one, in its run; NaN for that system itself."""
        first = self.others([cell], **dict(zip(SYSTEM, self.against, strict=True)))
        if not first:
            return dict.fromkeys(TESTED, math.nan)
        test = asdict(compare_means(results, first, [cell], self.metric, self.statistics))
        return {name: test["delta" if name == "lead" else name] for name in TESTED}

    def _intervals(self, results: Results, cells: Sequence[Cell]) -> dict[str, float]:
        """What the study asks for of a run of a system, or of the mean of its runs."""
        values: dict[str, float] = {}
        if DIFFERENCE in self.columns:
            others = self.others(cells, backbone=self.cells[0].backbone)
            test = compare_means(results, cells, others, self.metric, self.statistics) if others else None
            values |= {column: getattr(test, name, math.nan) for name, column in DIFFERENCES.items()}
        if LIMITS in self.columns:  # under its own order and T, or else under the main table's
            _, order, steps = self.against
            settings: Sequence[dict[str, Any]] = ({}, {"order": order, "steps": steps})
            pairs = ([self.partners(cells, method=name, **own) for name in ("ratio", "oracle")] for own in settings)
            rivals = next((pair for pair in pairs if all(pair)), [])
            rivals = [] if cells in rivals else rivals
            values |= closure_limits(results, [cells, *rivals], self.metric, self.statistics)
        return values

    # The layout.

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        metrics = {
            name: StudyColumn(metric.label, metric.decimals, align="c" if name == MAIN else "r")
            for name, metric in metrics_by_column(self.metrics).items()
        }
        columns = {name: (COLUMNS | metrics)[name] for name in self.columns}
        sections = []
        for _, of_place in numbers.groupby([name for name in PLACE if name in numbers], sort=False):
            rows = [SystemRow.of(self, of_system) for _, of_system in of_place.groupby(list(SYSTEM), sort=False)]
            groups = [self._group(row, rows, columns) for row in rows]
            sections.append(TableSection(groups, self._heading(rows[0])))
        rival = self.method(self.against[0]).short
        titles = (Column(one.title.replace("{against}", rival), align=one.align) for one in columns.values())
        timing = notes.timing([results.latency(cell) for cell in self.cells]) if self.timed else ()
        shares = [baseline for column, baseline in zip(CLOSURES, BASELINES, strict=True) if column in self.columns]
        head = (Column("System", align="l"), *titles)
        return Table(head, sections, (*self._notes(), *notes.doubtful_gaps(self, results, shares), *timing))

    def _group(self, system: SystemRow, rivals: Sequence[SystemRow], columns: Mapping[str, StudyColumn]) -> Group:
        """A row, with the best of the rivals that could be deployed bold in each metric."""
        ranked = {**metrics_by_column(self.metrics), "mae": MAE}
        deployable = [rival for rival in rivals if rival.key["method"] not in self.informed]
        cells = []
        for name, column in columns.items():
            values = [rival.mean[name] for rival in deployable if name in ranked and not pd.isna(rival.mean[name])]
            is_best = system in deployable and bool(values) and system.mean[name] == best(ranked[name])(values)
            text = system.number(name, column.text) if isinstance(column.text, int) else column.text(system)
            cells.append(TableCell(text, is_best))
        return Group.of(self._label(system.key), cells, shaded=system.is_tested)

    def _label(self, key: Mapping[str, Any]) -> str:
        """The method; order and T unless they are the main ones or have a column. A method's own order has its name."""
        _, order, steps = self.against
        parts = [self.method_in(key["method"], key["direction"])]
        if "order" not in self.columns and key["order"] not in (order, key["method"]):
            parts.append(self.order(key["order"]))
        if "steps" not in self.columns and key["steps"] != steps:
            parts.append(f"T = {key['steps']}")
        return ", ".join(parts)

    def _heading(self, first: SystemRow) -> str:
        """Where the systems of a section are compared."""
        key, pool = first.key, first.key.get("pool")
        trained = [f"pool of {pool} training pairs"] if pool else []
        place = self.place(key["direction"], key["testset"])
        return ", ".join([self.backbone(key["backbone"]), place, *trained, f"N = {first.mean['sentences']:.0f}"])

    def _notes(self) -> Iterator[str]:
        _, order, steps = self.against
        seeds = len({cell.seed for cell in self.cells})
        first = f"Reveal order {self.order(order)}, T = {steps}, unless a row says otherwise; {counted(seeds, 'run')}"
        spread = " (mean ± sample standard deviation)" if seeds > 1 else ""
        yield f"{first}{spread}. Bold: the best that sees no reference."
        yield from filter(None, (note(self, name) for name in self.columns if name in COLUMNS))


@dataclass(frozen=True)
class SystemRow:
    """A row: what it is, its mean and deviation over runs, and its runs one by one."""

    report: Systems
    key: Mapping[str, Any]
    mean: Mapping[str, Any]
    std: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, report: Systems, numbers: pd.DataFrame) -> Self:
        """The row of a system, of its part of the numbers."""
        mean, std, runs = (numbers[numbers["statistic"] == name].to_dict("records") for name in ("mean", "std", "run"))
        return cls(report, mean[0], mean[0], std[0], runs)

    @property
    def is_tested(self) -> bool:
        """Whether it is the system whose lead over the others is shown."""
        return tuple(self.key[name] for name in SYSTEM) == self.report.against

    def number(self, name: str, decimals: int) -> str:
        """Mean ± deviation; of a single run its value alone."""
        return formats.mean_std(self.mean[name], self.std[name], decimals)

    def lead(self) -> str:
        """The lead with its interval and p; of several runs the mean, and whether the intervals leave zero out."""
        if self.is_tested or pd.isna(self.mean["lead"]):
            return formats.NONE
        decimals = self.report.metric.decimals
        if len(self.runs) == 1:
            (run,) = self.runs
            interval = formats.interval(run["lead"], run["ci_low"], run["ci_high"], decimals)
            return f"{interval}, {formats.p_statement(run['p_two_sided'], self.report.statistics.resamples)}"
        above, below = sum(run["ci_low"] > 0 for run in self.runs), sum(run["ci_high"] < 0 for run in self.runs)
        lead = formats.signed(self.mean["lead"], decimals)
        return f"{lead} ({above} above, {below} below 0 of {len(self.runs)} runs)"

    def difference(self) -> str:
        """From the first backbone, with its interval and p; of several runs by their mean, sentence by sentence."""
        if pd.isna(self.mean["difference"]):
            return formats.NONE
        value, low, high = (self.mean[name] for name in ("difference", "difference_low", "difference_high"))
        p = formats.p_statement(self.mean["difference_p"], self.report.statistics.resamples)
        return f"{formats.interval(value, low, high, self.report.metric.decimals)}, {p}"

    def closure_interval(self) -> str:
        if pd.isna(self.mean["closure_low"]):
            return formats.NONE
        return f"[{', '.join(formats.percent(self.mean[name]) for name in ('closure_low', 'closure_high'))}]"

    def cost(self) -> str:
        text = self.number("cost", 2)
        return text if text == formats.NOT_AVAILABLE else f"{text}×"

    def closure(self, column: str) -> str:
        """The share of the gap; none of a fixed ratio over a better one, whose distance is not a share of a gap."""
        if column != "closure" and self.key["method"] in self.report.fixed:
            return formats.NONE
        counted = sum(not pd.isna(run[column]) for run in self.runs)
        return formats.closure(self.mean[column], self.std[column], counted, len(self.runs))

    def share(self, name: str) -> str:
        return formats.NONE if pd.isna(self.mean[name]) else formats.percent(self.mean[name], self.std[name])

    def grid(self) -> list[float]:
        """The candidate ratios, ascending; one for Fixed Ratio, none where the method has no grid."""
        return grid(self.report.experiment, self.key["method"], self.key["direction"])

    def probe_cap(self, steps: int = 0) -> str:
        """At most so many probes a sentence, and with ``steps`` so many passes; a dash where no number bounds them."""
        base = base_method(self.report.experiment, self.key["method"])
        if base not in ("ev", "oracle", "ratio"):  # the methods that are ours
            return formats.NONE
        probes = len(self.grid()) if base == "ev" else 0  # EV has one for each ratio
        return f"{'≤ ' * (probes > 0)}{steps + probes}"

    def ratios(self) -> str:
        ends = self.grid()[:1] + self.grid()[-1:]
        return "–".join(dict.fromkeys(f"{ratio:g}" for ratio in ends)) or formats.NONE


class StudyColumn(NamedTuple):
    """A column that a study may ask for: its title, the text in a row or the decimals of a mean with its deviation, and
    how it is read."""

    title: str
    text: Callable[[SystemRow], str] | int
    note: str = ""
    align: str = "r"


COLUMNS = {
    "order": StudyColumn("Order", lambda system: system.key["order"], align="c"),
    "steps": StudyColumn("T", lambda system: str(system.key["steps"])),
    "probe_cap": StudyColumn("Probe cap", SystemRow.probe_cap),
    "forward_cap": StudyColumn(
        "Fwd cap",
        lambda system: system.probe_cap(system.key["steps"]),
        "Caps: probes, and forward passes with them, at most; two ratios of a short source share a probe.",
    ),
    "candidates": StudyColumn("K", lambda system: str(len(system.grid()) or formats.NONE)),
    "ratios": StudyColumn("Ratios", SystemRow.ratios, align="c"),
    "mae": StudyColumn("MAE", MAE.decimals, "MAE: mean |canvas length − reference canvas|, in slots."),
    "closure": StudyColumn(
        closure_title("ratio"),
        lambda system: system.closure("closure"),
        "Gap closure: (method − Ratio) / (Oracle − Ratio) in {metric}, run by run, n/a unless Oracle leads.",
    ),
    LIMITS: StudyColumn(
        "Its 95 % CI",
        SystemRow.closure_interval,
        "Its 95 % CI: percentile bootstrap over sentences, of the closure by mean scores over runs.",
        align="c",
    ),
    "closure_eos": StudyColumn(
        closure_title("ratio_eos"),
        lambda system: system.closure("closure_eos"),
        "Closure over Ratio + EOS: the same over the fixed ratio with an EOS slot; –: of ratios without.",
    ),
    BEST: StudyColumn(
        "Closure over best ratio",
        lambda system: system.closure(BEST),
        "Closure over best ratio: the same over the fixed ratio (without that slot) with the best of these scores.",
    ),
    "lead": StudyColumn(
        "{against} − system [95 % CI], p",
        SystemRow.lead,
        "Leads: sentence by sentence, percentile bootstrap in a run, two-sided p; above, below: whole intervals. "
        "Neither is corrected for the number of systems.",
        align="c",
    ),
    DIFFERENCE: StudyColumn(
        "Difference [95 % CI], p",
        SystemRow.difference,
        "Difference: from the first backbone by the same method and seeds; tested as leads, by means of runs.",
        align="c",
    ),
    "cost": StudyColumn("Cost", SystemRow.cost, "Cost: calls over Fixed Ratio's."),
    "calls": StudyColumn("Calls", 2, "Calls: forward passes per sentence, as the paper counts them."),
    "slots": StudyColumn("Slots", 2, "Slots: canvas slots in these calls, per sentence."),
    "passes": StudyColumn("Passes", 2, "Passes: those really needed, per sentence."),
    TOKENS: StudyColumn("Tokens", 1, "Tokens: rows of prompt and canvas in these passes, per sentence."),
    CHANGED: StudyColumn(
        "Changed",
        lambda system: system.share(CHANGED),
        "Changed: sentences whose text is not that of the first backbone by the same method and seed.",
    ),
    "untouched": StudyColumn(
        "Untouched",
        lambda system: system.share("untouched"),
        "Untouched: sentences whose canvas is no longer than T, which a larger T cannot change.",
    ),
    "latency": StudyColumn(
        "Latency (s)", 4, "Latency: measured seconds per sentence, one at a time; the method alone, without the store."
    ),
    "latency_batched": StudyColumn("Batched (s)", 4, "Batched: the same with many sentences together."),
}
"""What a study may ask for beside metrics. ``{against}`` is the system whose lead is tested."""


def metrics_by_column(metrics: Sequence[Metric]) -> dict[str, Metric]:
    """The metrics by their columns."""
    return {MAIN: metrics[0]} | {metric.name: metric for metric in metrics[1:]}


def column_names(experiment: Experiment) -> list[str]:
    """What ``columns`` of a study may list: costs, then the metrics of the config, the main one as ``comet``."""
    return [*COLUMNS, *metrics_by_column(metrics_of(experiment.scoring))]


def note(report: OfStudy, column: str) -> str:
    """How a column is read."""
    return COLUMNS[column].note.replace("{metric}", report.metric.label)


# --- The figure of a study: a panel for each direction, each system a point, its score against the passes it takes.

MARKERS, SIZE = ("o", "^", "v", "P", "X", "<", ">", "h"), 4.5
NAME_PLACE = ["backbone", "direction", "testset"]
LINE, FRAME = 0.125, 0.7  # inches: from one label to the next; what a panel is higher than its axes
LOGARITHMIC = 3.0  # passes that differ by more than this factor get a logarithmic axis


class Point(NamedTuple):
    """A system of a panel: its printed name, its marker and colour, and its row of the summary."""

    name: str
    marker: str
    colour: str
    row: Any


class SystemsFigure(OfStudy, FigureReport):
    """A panel for each direction, a point for each system, Oracle a dashed line; where a study asks for it."""

    caption = (
        "Mean {metric} of each system against the passes that a sentence takes by itself, with standard deviations "
        "over training seeds. The dashed line is Oracle length, which needs the reference."
    )
    width = 3.15  # names included

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return super().cells if self.study.figure else []

    def problems(self) -> Iterator[str]:
        if self.study.figure:
            yield from self.of_one_backbone(", drawn,")

    def numbers(self, results: Results) -> pd.DataFrame:
        return with_costs(super().numbers(results), results, self.cells)

    def panels(self, numbers: pd.DataFrame) -> Sequence[Panel]:
        height = self.panel_height(numbers)
        places = numbers.groupby(NAME_PLACE, sort=False)
        return [functools.partial(_points, self, self.place(*key[1:]), rows, height) for key, rows in places]

    def panel_height(self, numbers: pd.DataFrame) -> float:
        """So that all labels of a panel fit beside it."""
        return max(self.height, FRAME + LINE * (numbers.groupby(NAME_PLACE).size().max() + 1))


def _points(report: SystemsFigure, title: str, rows: pd.DataFrame, height: float, axes: Axes) -> None:
    usual = rows[["order", "steps"]].value_counts(sort=False).idxmax()
    looks = _looks(ordered(rows["method"]))
    points = [Point(_name(report, row, usual), *looks[row.method], row) for row in rows.itertuples(index=False)]
    points.sort(key=lambda point: point.row.mean)
    for point in points:
        _draw(axes, point)
    _passes_axis(axes, rows.loc[rows["method"] != "oracle", "passes"])
    axes.margins(y=0.08)
    axes.set_ylim(axes.get_ylim())  # stays as it is, for the names
    _add_names(axes, points, LINE / (height - FRAME))
    axes.set_xlabel("passes per sentence")
    axes.set_ylabel(report.metric.label)
    axes.set_title(title)


def _looks(methods: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Marker and colour of each method. The paper's methods have their own in every figure; the others go through the
    colours, then the markers."""
    others = itertools.product(MARKERS, SERIES_COLOURS)
    return {
        name: (METHOD_MARKERS[name], METHOD_COLOURS[name]) if name in METHOD_COLOURS else next(others)
        for name in methods
    }


def _draw(axes: Axes, point: Point) -> None:
    row = point.row
    if row.method == "oracle":
        axes.axhline(row.mean, color=point.colour, linestyle="--", linewidth=0.9)
        return
    axes.errorbar(
        row.passes, row.mean, yerr=row.std, marker=point.marker, color=point.colour, linestyle="none", markersize=SIZE,
        ecolor=faint(point.colour), elinewidth=0.7, capsize=0,
    )  # fmt: skip


def _name(report: SystemsFigure, row: Any, usual: tuple[str, int]) -> str:
    """A system's short name, with its order and step budget where they are not those of most."""
    order, steps = usual
    by_name = row.method in METHODS or not report.is_ratio(row.method)
    parts = [report.method(row.method).short if by_name else report.method_in(row.method, row.direction)]
    if row.order not in (order, row.method):
        parts.append(row.order)
    if row.steps != steps:
        parts.append(f"T = {row.steps}")
    return ", ".join(parts)


def _add_names(axes: Axes, points: Sequence[Point], gap: float) -> None:
    """Names in a column right of the axes, in the order of their scores, with their markers, joined to their points."""
    (low, high), right = axes.get_ylim(), axes.get_xlim()[1]
    heights = spread([(point.row.mean - low) / (high - low) for point in points], gap)
    for (name, marker, colour, row), height in zip(points, heights, strict=True):
        is_line = row.method == "oracle"
        axes.annotate(
            name, (right if is_line else row.passes, row.mean), (1.17, height), textcoords="axes fraction",
            annotation_clip=False, zorder=1,
            arrowprops=dict(arrowstyle="-", color=faint(colour), linewidth=0.6, relpos=(0, 0.5), shrinkA=12, shrinkB=2),
            va="center", fontsize=7, fontweight="bold" if row.method in METHOD_COLOURS else "normal",
        )  # fmt: skip
        axes.plot(
            [1.1, 1.15] if is_line else [1.125], [height, height] if is_line else [height], "--" if is_line else marker,
            linewidth=0.9, markersize=SIZE, color=colour, transform=axes.transAxes, clip_on=False,
        )  # fmt: skip


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Ascending heights, each moved up until it is ``gap`` above the one before; those above 1 then move down."""
    heights: list[float] = []
    for height in wanted:
        heights.append(max(height, heights[-1] + gap) if heights else height)
    ceiling = 1.0
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], ceiling)
        ceiling = heights[place] - gap
    return heights


def _passes_axis(axes: Axes, passes: pd.Series) -> None:
    from matplotlib import ticker

    if passes.max() > LOGARITHMIC * passes.min():
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(ticker.LogLocator(base=2, subs=(1.0, 1.5)))
        axes.xaxis.set_major_formatter(ticker.ScalarFormatter())
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlim(axes.get_xlim())
