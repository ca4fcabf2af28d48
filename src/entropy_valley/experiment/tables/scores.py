"""Tables and figures of scores by length method: the main table, all backbones, the whole matrix; and what the studies
of step budgets, readings and a reproduction show."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley.experiment.config import Experiment, matrix
from entropy_valley.experiment.config.matrix import Cell, table_cells
from entropy_valley.experiment.config.paths import checkpoint_of
from entropy_valley.experiment.frames import CELL, PLACE, SETTING
from entropy_valley.experiment.stats.paper_numbers import Published, deviation, find
from entropy_valley.experiment.stats.summary import BASELINES, summary, with_costs
from entropy_valley.experiment.tables import footnotes, formats, style
from entropy_valley.experiment.tables.formats import CLOSURE_TITLES, RISING
from entropy_valley.experiment.tables.report import (
    AGAINST,
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
from entropy_valley.experiment.tables.systems import CLOSURES, note
from entropy_valley.scoring.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- What these tables share: a summary (stats/summary.py), looked up row by row, and the texts of a row.


def by_keys(frame: pd.DataFrame, *keys: str) -> dict[tuple[Any, ...], Any]:
    """The rows of a frame by some of its columns."""
    return {tuple(getattr(row, key) for key in keys): row for row in frame.itertuples(index=False)}


def places_of(numbers: pd.DataFrame) -> list[Any]:
    return [*dict.fromkeys(numbers[PLACE].itertuples(index=False, name=None))]


def ranked(names: Names, numbers: pd.DataFrame, setting: Sequence[str] = SETTING) -> pd.DataFrame:
    """A summary with ``best``: whether a method has the best mean of those of its setting that see no reference."""
    # What sees the reference cannot be deployed.
    deployable = numbers[~numbers["method"].isin(names.informed)]
    means = deployable.groupby([*setting, "metric"])["mean"]
    lower = [metric.name for metric in names.metrics if not metric.higher_is_better]
    best = means.transform("max").mask(deployable["metric"].isin(lower), means.transform("min"))
    return numbers.assign(best=(deployable["mean"] == best).reindex(numbers.index, fill_value=False))


def score(row: Any, metric: Metric) -> str:
    text = formats.mean_std(row.mean, row.std, metric.decimals)
    return Bold(text) if row.best else text


def closure(row: Any, baseline: str) -> str:
    """Gap closure, bold for the best; Oracle's and the baseline's hold by definition where any run has a gap."""
    mean, std, runs = (getattr(row, f"{BASELINES[baseline]}_{value}") for value in ("mean", "std", "runs"))
    if runs and row.method in ("oracle", baseline):
        return "100%" if row.method == "oracle" else "0%"
    # How far Fixed Ratio is below the ratio with an EOS slot is not a share of a gap.
    if row.method in BASELINES and baseline == "ratio_eos":
        return formats.NONE
    text = formats.closure(mean, std, runs, row.runs)
    return Bold(text) if runs and row.best else text


def baselines(numbers: pd.DataFrame) -> list[str]:
    """The fixed ratios over which a summary has gap closures."""
    return [name for name in BASELINES if name in set(numbers["method"])]


def closure_titles(numbers: pd.DataFrame) -> list[str]:
    return [CLOSURE_TITLES[name] for name in baselines(numbers)]


def closure_texts(numbers: pd.DataFrame, row: Any) -> list[str]:
    """A row's gap closures, below their titles."""
    return [closure(row, name) for name in baselines(numbers)]


# --- The main table.


def main_cells(experiment: Experiment) -> list[Cell]:
    """The main backbone's, under one reveal order and step budget."""
    return table_cells(experiment, experiment.tables.backbone)


@table(
    "Main table: {metrics} of the length methods for one backbone, mean and sample standard deviation over training "
    "seeds. Gap closure is (method − Ratio) / (Oracle − Ratio), run by run, over the paper's Fixed Ratio and over the "
    "same ratio with the EOS slot that EV and Oracle have. Oracle takes the reference's length.",
    main_cells,
    metrics=Names.main_metrics,
)
def main(data: Data) -> Shown:
    """Length methods by direction, for the main backbone. Bold is the best that could be deployed; EV is shaded."""
    numbers = summary(data, data.metrics)
    columns, rows = method_by_method(data, numbers)
    return Shown(numbers, columns, rows, [footnotes.setting(data), *footnotes.reading(data, numbers)], labels=2)


def method_by_method(names: Names, numbers: pd.DataFrame, whole: bool = False) -> tuple[list[Column], list[Row]]:
    """A group per direction, a row per method, of each metric the score and the gap closures. ``whole``: a section per
    backbone and order, too, and a group per step budget."""
    columns = aligned("l", "Direction") + aligned("r", "T") * whole + aligned("l", "Method")
    mean = "Mean ± Std" if numbers["runs"].max() > 1 else "One run"
    for metric in names.shown_metrics:
        columns += aligned("c", mean, *closure_titles(numbers), over=metric.label)
    rows = []
    for (backbone, order), section in ranked(names, numbers).groupby(["backbone", "order"], sort=False):
        title = f"{names.backbone(backbone)}, {names.order(order)}" if whole else ""
        for (*place, steps, method), of_method in section.groupby([*PLACE, "steps", "method"], sort=False):
            label = names.method_in(method, place[0])
            texts = [names.place(*place), *[str(steps)] * whole, Bold(label) if method == "ev" else label]
            # The config may print the metrics in another order than the summary has them.
            of_metric = {row.metric: row for row in of_method.itertuples()}
            for metric in names.shown_metrics:
                row = of_metric[metric.name]
                texts += [score(row, metric), *closure_texts(numbers, row)]
            rows.append(Row(texts, title, shaded=method == "ev"))
    return columns, rows


# --- A matrix of several reveal orders or step budgets: each length method under each of them.


def matrix_cells(experiment: Experiment) -> list[Cell]:
    """None where the main tables show the only order and step budget."""
    # The whole matrix of one order and budget would be the main tables again.
    several = len(experiment.matrix.orders) > 1 or len(experiment.matrix.steps) > 1
    return matrix.cells(experiment) if several else []


@table(
    "The whole matrix: {metrics} of every length method under every reveal order and step budget T, mean and sample "
    "standard deviation over training seeds. Gap closure is (method − Ratio) / (Oracle − Ratio) under the same order "
    "and T.",
    matrix_cells,
    metrics=Names.main_metrics,
)
def whole_matrix(data: Data) -> Shown:
    """All cells of the matrix: a section per backbone and order, a group per direction, in it the methods of each T."""
    numbers = summary(data, data.metrics)
    columns, rows = method_by_method(data, numbers, whole=True)
    backbones, orders, steps = (numbers[key].unique() for key in ("backbone", "order", "steps"))
    setting = f"Backbones: {', '.join(map(data.backbone, backbones))}. "
    setting += f"Reveal orders: {'; '.join(map(data.order, orders))}. T = {', '.join(map(str, steps))}."
    within = "Gap closure and bold compare the methods of one reveal order and one T."
    return Shown(numbers, columns, rows, [setting, within, *footnotes.reading(data, numbers)], labels=3)


# --- All backbones beside each other: scores of Oracle, Ratio and EV as a table, EV's gap closure as a figure.

COMPARED = ("oracle", "ratio", "ratio_eos", "ev")  # those of these that the matrix has
SPAN = 0.8  # of the unit between two backbones that their bars fill
CROSS = (
    "The length methods on every masked-diffusion backbone and direction, in {metric}, with EV's lead over Fixed Ratio "
    "and the share of Oracle's lead that it closes, also over Fixed Ratio with an EOS slot."
)


def all_backbones(experiment: Experiment) -> list[Cell]:
    """The cells of the main tables of all backbones, unless the matrix has just one."""
    return table_cells(experiment) if len(experiment.matrix.backbones) > 1 else []


def backbones_beside(data: Data) -> Shown:
    """Scores in one metric: a group per backbone, a row per direction. The CSV of the main metric has every metric."""
    numbers = summary(data, data.metrics)
    (metric,) = data.shown_metrics
    # The table of a further metric has just that one in its CSV.
    if metric != data.metric:
        numbers = numbers[numbers["metric"] == metric.name]
    methods = [name for name in COMPARED if name in set(numbers["method"])]
    columns = aligned("l", "Backbone", "Direction")
    columns += [Column(data.method(name).short, shaded=name == "ev") for name in methods]
    columns += aligned("c", "EV − Ratio") + aligned("c", *closure_titles(numbers), shaded=True)
    shown = ranked(data, numbers[numbers["metric"] == metric.name])
    rows = []
    for (backbone, *place), of_place in shown.groupby(["backbone", *PLACE], sort=False):
        of_method = by_keys(of_place, *PLACE, "method")
        texts = [data.backbone(backbone), data.place(*place)]
        texts += [score(of_method[*place, name], metric) for name in methods]
        ev = of_method[*place, "ev"]
        texts += [formats.signed(ev.delta_ratio, metric.decimals), *closure_texts(numbers, ev)]
        rows.append(Row(texts, metric.label))
    return Shown(numbers, columns, rows, [footnotes.setting(data), *footnotes.reading(data, numbers)], labels=2)


crossbb = table(CROSS, all_backbones, metrics=Names.only_main)(backbones_beside)
crossbb_bleu = table(
    CROSS.replace("{metric}", "sacreBLEU"), all_backbones, metrics=lambda names: names.named_metrics("bleu")
)(backbones_beside)


@figure(
    "Share of the {metric} gap between Fixed Ratio and Oracle that Entropy-Valley closes, by backbone and direction. "
    'Bars are standard deviations over training seeds; "n/a": in each run Oracle\'s lead over Ratio may be '
    "chance; such runs are left out of the means. Oracle, the reference's length, is not an upper bound.",
    all_backbones,
)
def crossbb_figure(data: Data) -> Figure:
    """Bars of EV's mean gap closure in per cent with deviations over runs; no gap to close prints n/a."""
    numbers = summary(data, data.metrics[:1]).query("method == 'ev'")
    return Figure(numbers, [functools.partial(_closure_bars, data, numbers)])


def _closure_bars(names: Names, numbers: pd.DataFrame, axes: Axes) -> None:
    backbones = [*numbers["backbone"].unique()]
    places = numbers.groupby(PLACE, sort=False)
    # More places give thinner bars, so backbones keep their distance.
    width = SPAN / len(places)
    for index, (place, rows) in enumerate(places):
        # The bars of a backbone stand side by side, centred on its tick.
        positions = rows["backbone"].map(backbones.index) + (index - (len(places) - 1) / 2) * width
        means, stds = (100 * rows[f"gap_closure_{name}"] for name in ("mean", "std"))
        colour = style.SERIES_COLOURS[index % len(style.SERIES_COLOURS)]
        axes.bar(positions, means, 0.92 * width, color=colour, label=names.place(*place))
        axes.errorbar(positions, means, yerr=stds, fmt="none", ecolor=style.INK, elinewidth=0.9)
        # Numbers stand above the bar and its deviation; n/a stands on the axis.
        heights = (means + stds.fillna(0)).fillna(0).clip(lower=0)
        for position, mean, height in zip(positions, means, heights, strict=True):
            axes.annotate(
                formats.number(mean, 1), (position, height), (0, 3), textcoords="offset points", ha="center",
                fontsize="small", bbox=style.ON_WHITE,
            )  # fmt: skip
    axes.margins(y=0.1)
    axes.axhline(0, color=style.INK, linewidth=0.7)
    axes.set_xticks(range(len(backbones)), [names.backbone(name) for name in backbones])
    axes.set_xlim(-0.5, len(backbones) - 0.5)  # also of a backbone without a bar
    axes.set_ylabel(f"{names.metric.label} gap closed by EV (%)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(places), handlelength=1)


# --- A study of step budgets: Oracle, EV and Ratio at each T, and how much of the gap EV closes there.

FALLING = RISING[::-1]
BUDGETS = (
    "Gap closure: (EV − Ratio) / (Oracle − Ratio) in each run, n/a if that lead may be chance; then mean ± std.",
    footnotes.ORACLE,
    "Bold: EV's mean is not below Oracle's, which knows the reference's length but decodes no better for it.",
    "L ≤ T: share of EV's canvases that have at most T slots; more steps than T leave them as they are.",
)
PARETO = (
    "{metric} of Fixed Ratio, Entropy-Valley and Oracle length at each step budget T. More steps than slots leave a "
    "canvas as it is; the table gives the share of such canvases. The reference's length is not an upper bound."
)


@table(PARETO, tells=("steps",), needs=matrix.COMPARED)
def budgets(data: Data) -> Shown:
    """Oracle, EV and Ratio at each step budget: a group per direction, a row per T."""
    numbers, metric = with_costs(data, data.metrics), data.metric
    columns = aligned("l", "Direction") + aligned("r", "T")
    columns += [Column(data.method(name).short, align="r", shaded=name == "ev") for name in FALLING]
    columns += aligned("r", "Gap closure", "L ≤ T")
    rows = []
    for place, of_place in numbers[numbers["metric"] == metric.name].groupby(PLACE, sort=False):
        # A config may list its budgets in any order.
        for steps, of_budget in of_place.groupby("steps"):  # ascending
            of_method = {row.method: row for row in of_budget.itertuples()}
            systems = [of_method[name] for name in FALLING]
            oracle, ev, _ = systems
            share = formats.closure(ev.gap_closure_mean, ev.gap_closure_std, ev.gap_closure_runs, ev.runs)
            texts = [data.place(*place), str(steps)]
            texts += [formats.mean_std(row.mean, row.std, metric.decimals) for row in systems]
            texts += [Bold(share) if ev.gap_closure_runs and ev.mean >= oracle.mean else share]
            rows.append(Row([*texts, f"{100 * ev.within_steps:.1f}%"]))
    cell = data.listed[0]
    whose = f"{data.backbone(cell.backbone)}, reveal order {data.order(cell.order)}"
    notes = [f"{metric.label} at each step budget T; {whose}.", footnotes.spread(numbers), *BUDGETS]
    return Shown(numbers, columns, rows, [*notes, *footnotes.doubtful_gaps(data, ["ratio"])], labels=2)


@figure(PARETO)
def budgets_figure(data: Data) -> Figure:
    """A panel for each direction: lines of means with deviations over runs, T on a logarithmic axis."""
    numbers = with_costs(data, data.metrics[:1])
    panels = [functools.partial(_budgets, data, rows) for _, rows in numbers.groupby(PLACE, sort=False)]
    return Figure(numbers, panels, width=2.1, height=2.2)


def _budgets(names: Names, numbers: pd.DataFrame, axes: Axes) -> None:
    first = names.listed[0]
    place, metric = tuple(numbers[PLACE].iloc[0]), names.metric
    # Later lines lie above earlier ones: Oracle is never hidden.
    for name in RISING:
        rows = numbers[numbers["method"] == name].sort_values("steps")
        axes.errorbar(
            rows["steps"], rows["mean"], yerr=rows["std"] if (rows["runs"] > 1).any() else None,
            color=style.METHOD_COLOURS[name], marker=style.METHOD_MARKERS[name], markersize=4,
            label=names.method(name).short,
        )  # fmt: skip
    # Budgets are usually doubled from one to the next.
    axes.set_xscale("log", base=2)
    axes.set_xticks(rows["steps"], [*map(str, rows["steps"])], fontsize="small")
    axes.minorticks_off()
    axes.set_xlabel("denoising steps T")
    axes.set_title(names.place(*place))
    if place == (first.direction, first.testset):
        axes.set_ylabel(metric.label)
        axes.legend(  # below the panel: within it, it would lie over a line
            loc="upper center", bbox_to_anchor=(0.4, -0.3), ncols=len(RISING), fontsize="small", handlelength=1.2,
            columnspacing=1,
        )  # fmt: skip


# --- A study of readings: a row for each variant of a backbone, what all its systems score, and what has changed.


@table(
    "One system under several readings of the paper: {metric} of each length method, and BLEU, gap closures and "
    "changed sentences of one of them. Oracle takes the reference's length. The CSV has all numbers of all methods.",
    tells=("backbone",),
    needs=("oracle", "ratio", AGAINST),
)
def readings(data: Data) -> Shown:
    """A section for each direction, a row for each backbone, the methods beside each other. No score is bold."""
    metric, against = data.metric, data.study.against
    # Only the main metric has a score for each sentence in every config.
    changed = changed_scores(data).assign(metric=metric.name)
    numbers = summary(data, data.metrics).merge(changed, "left", on=[*SETTING, "method", "metric"])
    methods = numbers["method"].unique()
    columns = aligned("l", "Readings")
    columns += aligned("c", *(data.method(name).short for name in methods), over=metric.label)
    columns += [Column(data.method(against).short, other.label) for other in data.shown_metrics[1:]]
    columns += aligned("c", *closure_titles(numbers)) + aligned("r", "Changed")
    rows = []
    for (*place, backbone), of_row in numbers.assign(best=False).groupby([*PLACE, "backbone"], sort=False):
        of_method = by_keys(of_row, "metric", "method")
        texts = [data.backbone(backbone), *(score(of_method[metric.name, name], metric) for name in methods)]
        texts += [score(of_method[other.name, against], other) for other in data.shown_metrics[1:]]
        own = of_method[metric.name, against]
        texts += closure_texts(numbers, own)
        rows.append(Row([*texts, formats.dash(formats.percent(own.changed))], data.place(*place)))
    # All cells have the same setting, see `tells`.
    cell = data.listed[0]
    notes = [
        f"Reveal order {data.order(cell.order)}, T = {cell.steps}. Closures and changes: of "
        f"{data.method(against).short}.",
        f"Changed: sentences with another {metric.label} than under the readings of the first row of the backbone, "
        "mean over runs.",
        *(note(data, column) for column, name in CLOSURES.items() if name in baselines(numbers)),
        footnotes.spread(numbers),
        footnotes.ORACLE,
    ]
    return Shown(numbers, columns, rows, [*notes, *footnotes.doubtful_gaps(data)])


def changed_scores(data: Data) -> pd.DataFrame:
    """For each system ``changed``: the share of sentences whose score in the main metric is not that under the readings
    of the backbone's origin, in the same system; the mean over runs. NaN for the origins."""
    metric = data.metric.name
    scores = data.sentences[[*CELL, "id", metric]]
    origins = scores["backbone"].map(functools.partial(checkpoint_of, data.experiment))
    # A variant is compared with its origin in the same system and seed.
    before = scores.rename(columns={"backbone": "origin", metric: "before"})
    variants = scores.assign(origin=origins)[origins != scores["backbone"]]
    pairs = variants.merge(before, on=["origin", *(key for key in CELL if key != "backbone"), "id"])
    shares = pairs.assign(changed=pairs[metric] != pairs["before"]).groupby(CELL, sort=False)["changed"].mean()
    return shares.groupby([*SETTING, "method"], sort=False).mean().reset_index()


# --- A study's systems beside what the paper prints for LLaDA-8B-Base: the check of a reproduction.

PUBLISHED = {"comet22": "comet", "bleu": "bleu"}  # our metrics as the transcription calls them
REPRODUCTION = (
    "Paper: means over three runs of LLaDA-8B-Base on all 2,037 sentences; – where the paper has no such number.",
    "Difference: here minus the paper's mean.",
    "Slots: mean over sentences of the canvas, the EOS slot included. The paper's is of Fixed ratio in another run "
    "(its slots over its calls): it says whether the paper's Ratio has that slot.",
)


@table(
    "{metric} and BLEU here beside those that the paper prints for LLaDA-8B-Base. Oracle takes the reference's length.",
    columns=("length",),
    metrics=Names.main_metrics,
    tells=(),
)
def reproduction(data: Data) -> Shown:
    """A group for each direction, a row for each method, ours and the paper's number side by side."""
    numbers = beside_the_paper(data)
    columns = aligned("l", "Direction", "Method") + aligned("c", "Here", "Paper", over="Slots")
    titles = ("Here", "Paper", "Difference", "Closure here", "Closure in the paper")
    for metric in data.shown_metrics:
        columns += aligned("c", *titles, over=metric.label)
    rows = []
    for place, of_place in ranked(data, numbers).groupby(PLACE, sort=False):
        of_method = by_keys(of_place, "metric", "method")
        for method in of_place["method"].unique():
            own = [of_method[metric.name, method] for metric in data.shown_metrics]
            texts = [data.place(*place), data.method_in(method, place[0])]
            texts += [formats.dash(formats.number(value, 2)) for value in (own[0].canvas, own[0].paper_canvas)]
            for metric, row in zip(data.shown_metrics, own, strict=True):
                texts += [
                    score(row, metric),
                    formats.dash(formats.mean_std(row.paper_mean, row.paper_std, metric.decimals)),
                    formats.dash(formats.signed(row.difference, metric.decimals)),
                    closure(row, "ratio"),
                    formats.dash(formats.percent(row.paper_gap_closure_mean, row.paper_gap_closure_std)),
                ]
            rows.append(Row(texts, shaded=method == "ev"))
    notes = [footnotes.setting(data), *REPRODUCTION, *footnotes.reading(data, numbers)]
    return Shown(numbers, columns, rows, notes, labels=2)


def beside_the_paper(data: Data) -> pd.DataFrame:
    """The summary with the mean slots of a canvas, ``canvas`` and ``paper_canvas``, the paper's mean and deviation over
    runs, those of its gap closure (shares), and ``difference``, ours minus the paper's; NaN where it has no number."""
    # First within a run, so that each run counts the same.
    slots = data.sentences.groupby(CELL, sort=False)["length"].mean().rename("canvas").reset_index()
    slots = slots.groupby([*SETTING, "method"], sort=False, as_index=False)["canvas"].mean()
    numbers = summary(data, data.metrics).merge(slots, on=[*SETTING, "method"])
    printed = []
    for row in numbers.itertuples():
        values = {"paper_canvas": papers_canvas(row.direction, row.method)}
        for column, ending in (("paper", ""), ("paper_gap_closure", "_closure")):
            metric = f"{PUBLISHED.get(row.metric)}{ending}"
            number = find("tab:main", metric, direction=row.direction, system=row.method)
            # A single run of the paper has no deviation.
            values[f"{column}_mean"] = value_of(number)
            values[f"{column}_std"] = value_of(deviation(number) if number else None)
        printed.append(values)
    numbers = pd.concat([numbers, pd.DataFrame(printed)], axis=1)
    return numbers.assign(difference=numbers["mean"] - numbers["paper_mean"])


def value_of(number: Published | None) -> float:
    return number.value / number.scale if number else math.nan


def papers_canvas(direction: str, method: str) -> float:
    """Mean slots of Fixed ratio's canvas in `tab:direct_length_baselines`; NaN for any other method, whose calls are of
    several canvases."""
    named = {"label": "tab:direct_length_baselines", "direction": direction, "system": "ratio"}
    # A call of one canvas takes its slots, so their quotient is the canvas.
    slots, calls = (find(metric=metric, **named) for metric in ("slots", "calls"))
    return slots.value / calls.value if slots and calls and method == "ratio" else math.nan
