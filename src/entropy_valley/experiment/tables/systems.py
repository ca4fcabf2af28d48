"""The table and the figure of a study: a row for each system, its columns named in the config."""

from __future__ import annotations

import csv
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from entropy_valley import files
from entropy_valley.experiment.config.methods import base_method, grid, is_ratio_without_slot, reassigned_methods
from entropy_valley.experiment.frames import PLACE, SYSTEM
from entropy_valley.experiment.stats.significance import paired_test
from entropy_valley.experiment.stats.summary import (
    BASELINES,
    LIMITS,
    closure,
    closure_limits,
    may_be_chance,
    with_costs,
)
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.report import (
    AGAINST,
    ZEROS,
    Bold,
    Column,
    Data,
    Figure,
    Names,
    Row,
    Shown,
    aligned,
    figure,
    table,
)
from entropy_valley.experiment.tables.style import METHOD_COLOURS, METHOD_MARKERS, SERIES_COLOURS, faint
from entropy_valley.scoring.metrics import Metric
from entropy_valley.texts import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- The numbers of a study: a row for each system and run, then its mean and deviation over runs.

TRAINED = ["backbone", *PLACE, "pool", "seed"]  # what systems of a study are compared within
COUNTED = ["length_mae", "calls", "slots", "passes", "within_steps", "sentences"]  # of a cell
MAIN = "comet"  # the main metric in `columns` of a study, whatever its key
TIMED = {"latency": "single", "latency_batched": "batched"}  # of a latency, where a column has it
CLOSURES = dict(zip(("closure", "closure_eos"), BASELINES, strict=True))
BEST = "closure_best"  # over the best of the run's fixed ratios
TESTED = {"delta": "lead"}  # columns by the names of a paired test: of two systems in a run
TESTED |= {name: name for name in ("ci_low", "ci_high", "p_one_sided", "p_two_sided", "wilcoxon_p")}
DIFFERENCES = {  # of two systems' mean scores over runs
    "delta": "difference", "ci_low": "difference_low", "ci_high": "difference_high", "p_two_sided": "difference_p",
}  # fmt: skip

System = tuple[str, str, int]  # method, order and T
Key = tuple[Any, ...]  # the values of TRAINED, then of SYSTEM


def numbers(data: Data, against: System) -> pd.DataFrame:
    """One row per system and run, then its mean and sample standard deviation over runs (column ``statistic``).

    Columns: TRAINED, ``pool`` only where a run has one, and SYSTEM; the metrics by their names; ``mae``, the mean
    absolute error of the canvas length in slots; ``calls``, ``slots`` and ``passes`` per sentence; ``untouched``, the
    share of canvases that no larger T could change; CLOSURES; ``cost``, calls over Fixed Ratio's; TESTED, of the system
    ``against`` minus the system, sentence by sentence in the main metric. And where a column has it: BEST; ``tokens``
    of all passes per sentence; ``changed``, the share of sentences whose text is not that of the first backbone with
    the same system; DIFFERENCES from that backbone and LIMITS, of a run, or of the mean of runs; medians of measured
    seconds per sentence, one at a time and all together, TIMED.
    What a study has no systems for is NaN. Seeds are never pooled: tests are of single runs.
    """
    scores = by_cell(data.sentences, data.metric.name)
    runs = of_runs(data, scores, against)
    groups = runs.groupby([*TRAINED[:-1], *SYSTEM], sort=False)
    values = runs.columns.drop([*TRAINED, *SYSTEM])
    mean, std = groups[[*values]].mean(), groups[[*values]].std()
    # Limits and p-values are of single runs, or of the mean of runs, never a mean themselves.
    single = values.intersection([*TESTED.values(), *DIFFERENCES.values(), *LIMITS]).drop("lead")
    mean[single] = std[single] = math.nan
    for place, seeds in groups["seed"]:
        # A key is that of a run; any seed stands for all of the group.
        own = (*place[:4], seeds.iloc[0], *place[4:])
        for name, value in of_means(data, scores, own, [*seeds], against).items():
            mean.loc[place, name] = value
    parts = [runs.assign(statistic="run", runs=1)]
    for name, frame in (("mean", mean), ("std", std)):
        parts.append(frame.assign(runs=groups.size(), statistic=name).reset_index())
    # Most studies have no pools, and so no such column.
    place = TRAINED[:-1] if runs["pool"].any() else TRAINED[:-2]
    return pd.concat(parts, ignore_index=True)[[*place, *SYSTEM, "statistic", "seed", "runs", *values]]


def by_cell(sentences: pd.DataFrame, value: str) -> dict[Key, pd.Series]:
    """Of each cell a value of each sentence."""
    cells = sentences.groupby([*TRAINED, *SYSTEM], sort=False)
    return {key: rows.set_index("id")[value] for key, rows in cells}


def of_runs(data: Data, scores: Mapping[Key, pd.Series], against: System) -> pd.DataFrame:
    columns, first = data.study.columns, data.listed[0].backbone
    texts = by_cell(data.sentences, "hypothesis") if "changed" in columns else {}
    cells = data.cells.set_index([*TRAINED, *SYSTEM])
    whole, calls = cells[data.metric.name], cells["calls"]
    # A gap is over the best of some ratios.
    over = {column: [name] for column, name in CLOSURES.items()}
    if BEST in columns:
        over[BEST] = fixed_ratios(data)
    rows = []
    for cell, key in zip(data.listed, cells.index, strict=True):
        run, setting = key[:5], beside(scores, key, against)
        row: dict[str, float] = {}
        if is_timed(data):
            measured = data.files.latency(cell)
            row |= {name: measured[kind]["seconds_per_sentence"] for name, kind in TIMED.items()}
        if "changed" in columns:
            other = texts.get((first, *key[1:]))
            is_variant = cell.backbone != first and other is not None
            row["changed"] = (texts[key] != other).mean() if is_variant else math.nan
        oracle = (*run, "oracle", *setting)
        for column, methods in over.items():
            ratios = [one for name in methods if (one := (*run, name, *setting)) in scores]
            row[column] = math.nan
            if oracle in scores and ratios:
                best = max(ratios, key=whole.get)
                # A share of a gap that may be chance would be any number.
                if not may_be_chance(scores[oracle] - scores[best]):
                    row[column] = float(closure(whole[key], whole[best], whole[oracle]))
        row["cost"] = calls[key] / calls.get((*run, "ratio", *setting), math.nan)
        rival = (*run, *against)
        row |= tested(data, TESTED, scores.get(rival) if rival != key else None, scores[key])
        rows.append(row | of_means(data, scores, key, [cell.seed], against))
    shown = [metric.name for metric in data.metrics] + COUNTED + ["run_tokens"] * ("tokens" in columns)
    own = data.cells.reindex(columns=[*TRAINED, *SYSTEM, *shown])
    own = own.rename(columns={"length_mae": "mae", "within_steps": "untouched", "run_tokens": "tokens"})
    return own.join(pd.DataFrame(rows))


def tested(
    names: Names, columns: Mapping[str, str], first: pd.Series | None, second: pd.Series | None
) -> dict[str, float]:
    """The paired test of two systems, its fields by the names of their columns; NaN without either system."""
    if first is None or second is None:
        return dict.fromkeys(columns.values(), math.nan)
    test = paired_test(first, second, names.statistics)
    return {column: test[name] for name, column in columns.items()}


def system_of(cell: Any) -> System:
    return cell.method, cell.order, cell.steps


def fixed_ratios(names: Names) -> list[str]:
    """The fixed ratios without a slot for the EOS."""
    methods = dict.fromkeys(cell.method for cell in names.listed)
    return [name for name in methods if is_ratio_without_slot(names.experiment, name)]


def beside(scores: Mapping[Key, pd.Series], own: Key, against: System) -> tuple[str, int]:
    """The order and T of the Ratio and Oracle that a system is compared with: its own, or else the main table's."""
    has_own = any((*own[:5], name, *own[6:]) in scores for name in ("ratio", "oracle"))
    return own[6:] if has_own else against[1:]


def of_means(
    names: Names, scores: Mapping[Key, pd.Series], own: Key, seeds: Sequence[int], against: System
) -> dict[str, float]:
    """What the study asks for of a system's mean over runs: its difference from the first backbone, and limits of its
    closure. ``own`` is its key with any of the ``seeds``."""

    def mean(system: Key, backbone: str = own[0]) -> Any:
        """The mean of a system's scores over the same seeds, sentence by sentence; None unless it has all of them."""
        runs: list[Any] = [scores.get((backbone, *own[1:4], seed, *system)) for seed in seeds]
        return None if any(run is None for run in runs) else sum(runs) / len(runs)

    first, columns = names.listed[0].backbone, names.study.columns
    values: dict[str, float] = {}
    if "difference" in columns:
        # A sentence is compared with itself, by the same method and seeds.
        before = mean(own[5:], first) if own[0] != first else None
        values |= tested(names, DIFFERENCES, mean(own[5:]), before)
    if "closure_interval" in columns:
        values |= dict.fromkeys(LIMITS, math.nan)
        rivals = [(name, *beside(scores, own, against)) for name in ("ratio", "oracle")]
        ratio, oracle = map(mean, rivals)
        # Those of Ratio and Oracle hold by definition.
        if own[5:] not in rivals and ratio is not None and oracle is not None:
            values |= closure_limits(mean(own[5:]), ratio, oracle, names.statistics)
    return values


# --- The columns that a study may ask for.


class StudyColumn(NamedTuple):
    """A column that a study may ask for; ``decimals`` are those of a mean, ``note`` says how it is read."""

    title: str
    decimals: str | int
    align: str
    note: str = ""


def text_of(names: Names, runs: pd.DataFrame, mean: Any, std: Any, column: str, decimals: str | int) -> str:
    """The text of a system in a column, by default the mean over its runs with the deviation; ``decimals`` are those of
    a mean."""
    digits, resamples = names.metric.decimals, names.statistics.resamples
    # Ascending; one for Fixed Ratio, none where the method has no grid.
    ratios = grid(names.experiment, mean.method, mean.direction)
    match column:
        case "order":
            return mean.order
        case "steps":
            return str(mean.steps)
        case "probe_cap" | "forward_cap":  # at most so many probes a sentence, or so many passes with them
            base = base_method(names.experiment, mean.method)
            if base not in ("ev", "oracle", "ratio"):  # no number bounds the methods that are not ours
                return formats.NONE
            probes = len(ratios) if base == "ev" else 0  # EV has one for each ratio
            steps = mean.steps if column == "forward_cap" else 0
            # Without probes the number is exact.
            return f"{'≤ ' * (probes > 0)}{steps + probes}"
        case "candidates":
            return str(len(ratios) or formats.NONE)
        case "ratios":
            return "–".join(dict.fromkeys(f"{ratio:g}" for ratio in ratios[:1] + ratios[-1:])) or formats.NONE
        case "closure" | "closure_eos" | "closure_best":
            # The distance of a fixed ratio from a better one is not a share of a gap.
            if column != "closure" and mean.method in fixed_ratios(names):
                return formats.NONE
            return formats.closure(mean[column], std[column], runs[column].count(), len(runs))
        case "closure_interval":
            low, high = map(formats.percent, mean[[*LIMITS]])
            return f"[{low}, {high}]" if low != formats.NOT_AVAILABLE else formats.NONE
        case "lead" if pd.isna(mean.lead):  # also of the system that the others are compared with
            return formats.NONE
        case "lead" if len(runs) == 1:
            (run,) = runs.itertuples()
            interval = formats.interval(run.lead, run.ci_low, run.ci_high, digits)
            return f"{interval}, {formats.p_statement(run.p_two_sided, resamples)}"
        case "lead":
            # Intervals of single runs are never pooled, only counted.
            above, below = (runs["ci_low"] > 0).sum(), (runs["ci_high"] < 0).sum()
            return f"{formats.signed(mean.lead, digits)} ({above} above, {below} below 0 of {len(runs)} runs)"
        case "difference" if pd.isna(mean.difference):
            return formats.NONE
        case "difference":
            interval = formats.interval(mean.difference, mean.difference_low, mean.difference_high, digits)
            return f"{interval}, {formats.p_statement(mean.difference_p, resamples)}"
        case "cost":
            text = formats.mean_std(mean.cost, std.cost, 2)
            return text if text == formats.NOT_AVAILABLE else f"{text}×"
        case "changed" | "untouched":
            return formats.dash(formats.percent(mean[column], std[column]))
    return formats.mean_std(mean[column], std[column], int(decimals))


_LISTED = csv.DictReader(files.read_lines(Path(__file__).with_name("study_columns.csv")))
COLUMNS = {row.pop("column"): StudyColumn(**row) for row in _LISTED}
"""What a study may ask for beside metrics. ``{against}`` is the system whose lead is tested."""


def metrics_by_column(metrics: Sequence[Metric]) -> dict[str, Metric]:
    """The metrics by the columns of a study: MAIN, and their names."""
    return {MAIN: metrics[0]} | {metric.name: metric for metric in metrics}


def note(names: Names, column: str) -> str:
    """How a column is read."""
    return COLUMNS[column].note.replace("{metric}", names.metric.label)


# --- The table.


def is_timed(names: Names) -> bool:
    return bool(TIMED.keys() & {*names.study.columns})


def latencies(names: Names) -> list[str]:
    return [cell.latency(names.experiment.results) for cell in names.listed] if is_timed(names) else []


def printed_metrics(names: Names) -> list[Metric]:
    metrics = metrics_by_column(names.metrics)
    columns = (MAIN, "bleu", *names.study.columns)
    return list(dict.fromkeys(metrics[name] for name in columns if name in metrics))


def untimed_methods(names: Names) -> Iterator[str]:
    """A method that deals another's canvases has nothing to time by itself."""
    # A study without times may have any method.
    methods = {cell.method for cell in names.listed} if is_timed(names) else set()
    for name in reassigned_methods(names.experiment):
        if name in methods:
            yield f"method {name!r} takes another's canvases and has no latency; remove it, or that column"


@table(
    "Systems beside each other, as a study of the config names them: scores, costs and the lead of one system over "
    "each of the others, sentence by sentence. Oracle takes the reference's length. The CSV has every run.",
    columns=("hypothesis",),
    files=latencies,
    metrics=printed_metrics,
    tells=("backbone", "order", "steps", "pool"),
    problems=untimed_methods,
)
def systems_table(data: Data) -> Shown:
    """A section for each backbone and direction, a row for each system, the columns that the study asks for. Bold are
    the best scores, and the lowest MAE, of the systems that could be deployed."""
    main = data.experiment.tables
    # The system whose lead over the others is tested.
    against = (data.study.against, main.order, main.steps)
    table, by_column = numbers(data, against), metrics_by_column(data.metrics)
    columns = {}  # by their names in the numbers
    for name in data.study.columns:
        # A study calls the main metric `comet`, whatever its key.
        if metric := by_column.get(name):
            columns[metric.name] = StudyColumn(metric.label, metric.decimals, "c" if name == MAIN else "r")
        else:
            columns[name] = COLUMNS[name]
    rival = data.method(against[0]).short
    titles = aligned("l", "System")
    titles += [Column(one.title.replace("{against}", rival), align=one.align) for one in columns.values()]
    rows = []
    for _, section in table.groupby([key for key in TRAINED[:-1] if key in table], sort=False):
        best = best_values(data, section[section["statistic"] == "mean"])
        for _, rows_of in section.groupby(SYSTEM, sort=False):
            # The runs come first, then their mean and their deviation.
            runs, mean, std = rows_of.iloc[:-2], rows_of.iloc[-2], rows_of.iloc[-1]
            method, order = data.method_in(mean.method, mean.direction), data.order(mean.order)
            texts = [system_label(method, order, mean, against[1:], data.study.columns)]
            for name, column in columns.items():
                text = text_of(data, runs, mean, std, name, column.decimals)
                is_best = mean.method not in data.informed and mean.get(name) == best.get(name, math.nan)
                texts.append(Bold(text) if is_best else text)
            rows.append(Row(texts, heading(data, mean), shaded=system_of(mean) == against))
    shares = [baseline for column, baseline in CLOSURES.items() if column in columns]
    timing = footnotes.timing([data.files.latency(cell) for cell in data.listed]) if is_timed(data) else []
    notes = [*study_notes(data, against), *footnotes.doubtful_gaps(data, shares), *timing]
    return Shown(table, titles, rows, notes)


def best_values(names: Names, means: pd.DataFrame) -> dict[str, float]:
    """The best mean in each metric, and the lowest error of the length, of the systems that could be deployed."""
    # What sees the reference cannot be deployed.
    deployable = means[~means["method"].isin(names.informed)]
    best = {"mae": deployable["mae"].min()}
    for metric in names.metrics:
        scores = deployable[metric.name]
        best[metric.name] = scores.max() if metric.higher_is_better else scores.min()
    return best


def system_label(method: str, order: str, row: Any, usual: tuple[str, int], columns: Sequence[str] = ()) -> str:
    """The printed method; printed order and T unless they are the usual ones or have a column. A method's own order
    has its name."""
    named = f", {order}" if "order" not in columns and row.order not in (usual[0], row.method) else ""
    budget = f", T = {row.steps}" if "steps" not in columns and row.steps != usual[1] else ""
    return f"{method}{named}{budget}"


def heading(names: Names, mean: Any) -> str:
    place = f"{names.backbone(mean.backbone)}, {names.place(mean.direction, mean.testset)}"
    pool = f", pool of {mean.pool} training pairs" if mean.get("pool") else ""
    return f"{place}{pool}, N = {mean.sentences:.0f}"


def study_notes(names: Names, against: System) -> Iterator[str]:
    seeds = len({cell.seed for cell in names.listed})
    spread = " (mean ± sample standard deviation)" if seeds > 1 else ""
    setting = f"Reveal order {names.order(against[1])}, T = {against[2]}, unless a row says otherwise"
    yield f"{setting}; {counted(seeds, 'run')}{spread}. Bold: the best that sees no reference."
    yield from filter(None, (note(names, name) for name in names.study.columns if name in COLUMNS))
    # Readers take the reference's length for an upper bound.
    if any(cell.method == "oracle" for cell in names.listed):
        yield footnotes.ORACLE


# --- A study of several test sets and pools of training pairs: scores by method, EV's lead and its tests.


def transfer_problems(names: Names) -> Iterator[str]:
    if names.study.against == "ratio":
        layout = f"the layout {names.study.layout}"
        yield f"{layout} compares `against` with ratio, but `against` is ratio itself; name another method"


@table(
    "{metric} of each length method by evaluation set and pool of training pairs, then Entropy-Valley minus Fixed "
    "ratio, sentence by sentence, with its 95 % confidence interval and two paired tests. Oracle takes the "
    "reference's length.",
    columns=("hypothesis",),
    files=latencies,
    metrics=printed_metrics,
    tells=("backbone", "pool"),
    needs=("ratio", AGAINST),
    problems=transfer_problems,
)
def transfer(data: Data) -> Shown:
    """A section for each backbone and direction, a group for each test set, a row for each pool and seed."""
    metric, how = data.metric, data.statistics
    against = (data.study.against, data.listed[0].order, data.listed[0].steps)  # which all of its systems have
    table = numbers(data, against)
    runs = table[table["statistic"] == "run"]
    methods = runs["method"].unique()
    deployable = [name for name in methods if name not in data.informed]
    columns = aligned("l", "Evaluation set") + aligned("r", "Pool", "Seed")
    columns += aligned("c", *(data.method(name).short for name in methods), over=metric.label)
    lead = f"{data.method(against[0]).short} − {data.method('ratio').short} [95 % CI]"
    columns += aligned("c", lead, "p", "Wilcoxon's p")
    rows = []
    # Without pools the numbers have no such column.
    runs = runs.assign(pool=runs.get("pool", ""))
    for (backbone, direction, testset), of_testset in runs.groupby(["backbone", *PLACE], sort=False):
        for (pool, seed), of_run in of_testset.groupby(["pool", "seed"], sort=False):
            of_method = of_run.set_index("method")
            scores, test = of_method[metric.name], of_method.loc["ratio"]
            texts = [testset, pool or formats.NONE, f"{seed:.0f}"]
            for name in methods:
                text = formats.number(scores[name], metric.decimals)
                texts.append(Bold(text) if name in deployable and scores[name] == scores[deployable].max() else text)
            texts.append(formats.interval(test["lead"], test["ci_low"], test["ci_high"], metric.decimals))
            texts += [formats.p_value(test["p_two_sided"], how.resamples), formats.small_p(test["wilcoxon_p"])]
            rows.append(Row(texts, f"{data.backbone(backbone)}, {formats.direction(direction)}"))
    notes = [
        f"Reveal order {data.order(against[1])}, T = {against[2]}; a row is one run. Bold: the best that sees no "
        "reference.",
        "Tests of the difference, both two-sided: p, paired bootstrap over sentences; Wilcoxon's signed-rank test "
        f"{ZEROS[how.wilcoxon_zeros]}. The CSV has the other scores, costs and gap closures.",
        footnotes.ORACLE,
        *footnotes.doubtful_gaps(data, ["ratio"]),
    ]
    return Shown(table, columns, rows, notes, labels=3)


# --- The figure of a study: a panel for each direction, each system a point, its score against the passes it takes.

MARKERS, SIZE = ("o", "^", "v", "P", "X", "<", ">", "h"), 4.5
LINE, FRAME = 0.15, 0.7  # inches: from one name to the next; what a panel is higher than its axes
LOGARITHMIC = 3.0  # passes that differ by more than this factor get a logarithmic axis


@figure(
    "Mean {metric} of each system against the passes that a sentence takes by itself, with standard deviations over "
    "training seeds. The dashed line is Oracle length, which needs the reference and is not an upper bound.",
    tells=("order", "steps"),
    wanted=lambda names: bool(names.listed and names.study.figure),
)
def systems_figure(data: Data) -> Figure:
    """A panel for each direction, a point for each system, Oracle a dashed line; where a study asks for it."""
    numbers = with_costs(data, data.metrics[:1])
    places = numbers.groupby(["backbone", *PLACE], sort=False)
    height = max(2.7, FRAME + LINE * (places.size().max() + 1))  # all labels of a panel fit beside it
    panels = [functools.partial(_points, data, data.place(*key[1:]), rows) for key, rows in places]
    return Figure(numbers, panels, width=3.15, height=height)  # names included


def _points(names: Names, title: str, rows: pd.DataFrame, axes: Axes) -> None:
    # Names say only what differs from most.
    usual = rows[["order", "steps"]].value_counts(sort=False).idxmax()
    # The paper's methods look alike in every figure; the others go through the colours, then the markers.
    others = itertools.product(MARKERS, SERIES_COLOURS)
    looks = {
        name: (METHOD_MARKERS[name], METHOD_COLOURS[name]) if name in METHOD_COLOURS else next(others)
        for name in rows["method"].unique()
    }
    # The legend lists the systems from the best one down.
    drawn: list[Any] = []
    for row in rows.sort_values("mean", ascending=False, kind="stable").itertuples():
        marker, colour = looks[row.method]
        label = system_label(names.method(row.method).short, row.order, row, usual)
        if row.method == "oracle":
            drawn.append(axes.axhline(row.mean, color=colour, linestyle="--", linewidth=0.9, label=label))
            continue
        point = axes.errorbar(
            row.passes, row.mean, yerr=row.std, marker=marker, color=colour, linestyle="none", markersize=SIZE,
            ecolor=faint(colour), elinewidth=0.7, capsize=0, label=label,
        )  # fmt: skip
        drawn.append(point)
    _passes_axis(axes, rows.loc[rows["method"] != "oracle", "passes"])
    axes.margins(y=0.08)
    axes.set_xlabel("passes per sentence")
    axes.set_ylabel(names.metric.label)
    axes.set_title(title)
    axes.legend(handles=drawn, loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


def _passes_axis(axes: Axes, passes: pd.Series) -> None:
    from matplotlib import ticker

    # On a linear axis the cheap systems would lie on each other.
    if passes.max() > LOGARITHMIC * passes.min():
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(ticker.LogLocator(base=2, subs=(1.0, 1.5)))
        axes.xaxis.set_major_formatter(ticker.ScalarFormatter())
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlim(axes.get_xlim())
