"""Tables and figures of scores by length method: the main table, all backbones, the whole matrix; and what the studies
of step budgets, readings and a reproduction show."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley.config import Experiment, matrix
from entropy_valley.config.matrix import Cell, table_cells
from entropy_valley.errors import InputError
from entropy_valley.frames import PLACE, SETTING
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.summary import BASELINES, summary
from entropy_valley.tables import footnotes, formats, style
from entropy_valley.tables.formats import closure_title, ordered
from entropy_valley.tables.names import Names
from entropy_valley.tables.report import Data, figure, table
from entropy_valley.tables.show import Bold, Column, Row, Shown
from entropy_valley.tables.style import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- What these tables share: a summary (stats/summary.py), looked up row by row, and the texts of a row.


class Rows(dict[Any, Any]):
    """The rows of a frame by some of its columns, the last of which is the method."""

    def __init__(self, frame: pd.DataFrame, *keys: str) -> None:
        super().__init__((tuple(getattr(row, key) for key in keys), row) for row in frame.itertuples(index=False))

    def __missing__(self, key: Sequence[Any]) -> Any:
        place = "/".join(map(str, key[:-1]))
        raise InputError(place, f"no scores of method {key[-1]}", f"Add {key[-1]} to the matrix's methods.")


def ranked(names: Names, numbers: pd.DataFrame) -> pd.DataFrame:
    """A summary with ``best``: whether a method has the best mean of those of its setting that see no reference."""
    deployable = numbers[~numbers["method"].isin(names.informed)]
    means = deployable.groupby([*SETTING, "metric"])["mean"]
    lower = [metric.name for metric in names.metrics if not metric.higher_is_better]
    best = means.transform("max").mask(deployable["metric"].isin(lower), means.transform("min"))
    return numbers.assign(best=(deployable["mean"] == best).reindex(numbers.index, fill_value=False))


def score(row: Any, metric: Metric) -> str:
    """Mean ± std, bold for the best."""
    text = formats.mean_std(row.mean, row.std, metric.decimals)
    return Bold(text) if row.best else text


def closure(row: Any, baseline: str) -> str:
    """Gap closure, bold for the best; Oracle's and the baseline's hold by definition where any run has a gap.

    Fixed Ratio has none over the ratio with an EOS slot: how far it is below that one is not a share of a gap.
    """
    mean, std, runs = (getattr(row, f"{BASELINES[baseline]}_{value}") for value in ("mean", "std", "runs"))
    if runs and row.method in ("oracle", baseline):
        return "100%" if row.method == "oracle" else "0%"
    if row.method in BASELINES and baseline == "ratio_eos":
        return formats.NONE
    text = formats.closure(mean, std, runs, row.runs)
    return Bold(text) if runs and row.best else text


def baselines(numbers: pd.DataFrame) -> list[str]:
    """The fixed ratios over which a summary has gap closures."""
    return [name for name in BASELINES if name in set(numbers["method"])]


def score_columns(numbers: pd.DataFrame, metric: Metric) -> list[Column]:
    """Scores and gap closures in a metric."""
    mean = "Mean ± Std" if numbers["runs"].max() > 1 else "One run"
    return [Column(title, metric.label) for title in (mean, *map(closure_title, baselines(numbers)))]


def method_label(names: Names, row: Any) -> str:
    label = names.method_in(row.method, row.direction)
    return Bold(label) if row.method == "ev" else label


# --- The main table.


def main_cells(experiment: Experiment) -> list[Cell]:
    """The main backbone's, under one reveal order and step budget."""
    return table_cells(experiment, experiment.tables.backbone)


@table(
    "Main table: {metrics} of the length methods for one backbone, mean and sample standard deviation over training "
    "seeds. Gap closure is (method − Ratio) / (Oracle − Ratio), run by run, over the paper's Fixed Ratio and over the "
    "same ratio with the EOS slot that EV and Oracle have. Oracle takes the reference's length.",
    main_cells,
    metrics=lambda names: names.main_metrics,
)
def main(names: Names, data: Data) -> Shown:
    """Length methods by direction, for the main backbone. Bold is the best that could be deployed; EV is shaded."""
    numbers = summary(data, names.metrics)
    columns = [Column("Direction", align="l"), Column("Method", align="l")]
    for metric in names.shown_metrics:
        columns += score_columns(numbers, metric)
    rows = []
    for place, of_place in ranked(names, numbers).groupby(PLACE, sort=False):
        for label, texts, is_ev in method_rows(names, of_place):
            rows.append(Row([names.place(*place), label, *texts], shaded=is_ev))
    return Shown(numbers, columns, rows, [footnotes.setting(names), *footnotes.reading(names, data, numbers)], labels=2)


def method_rows(names: Names, of_setting: pd.DataFrame) -> Iterator[tuple[str, list[str], bool]]:
    """Label and texts of each method of a setting, and whether it is EV."""
    by_metric = Rows(of_setting, "metric", "method")
    for method in ordered(of_setting["method"]):
        texts = []
        for metric in names.shown_metrics:
            row = by_metric[metric.name, method]
            texts += [score(row, metric), *(closure(row, name) for name in baselines(of_setting))]
        yield method_label(names, row), texts, method == "ev"


# --- A matrix of several reveal orders or step budgets: each length method under each of them.


def matrix_cells(experiment: Experiment) -> list[Cell]:
    """None where the main tables show the only order and step budget."""
    several = len(experiment.matrix.orders) > 1 or len(experiment.matrix.steps) > 1
    return matrix.cells(experiment) if several else []


@table(
    "The whole matrix: {metrics} of every length method under every reveal order and step budget T, mean and sample "
    "standard deviation over training seeds. Gap closure is (method − Ratio) / (Oracle − Ratio) under the same order "
    "and T.",
    matrix_cells,
    metrics=lambda names: names.main_metrics,
)
def whole_matrix(names: Names, data: Data) -> Shown:
    """All cells of the matrix: a section per backbone and order, a group per direction, in it the methods of each T."""
    numbers = summary(data, names.metrics)
    columns = [Column("Direction", align="l"), Column("T", align="r"), Column("Method", align="l")]
    for metric in names.shown_metrics:
        columns += score_columns(numbers, metric)
    rows = []
    for (backbone, order), section in ranked(names, numbers).groupby(["backbone", "order"], sort=False):
        for (*place, steps), of_setting in section.groupby([*PLACE, "steps"], sort=False):
            for label, texts, is_ev in method_rows(names, of_setting):
                labels = [names.place(*place), str(steps), label]
                rows.append(Row([*labels, *texts], f"{names.backbone(backbone)}, {names.order(order)}", is_ev))
    backbones, orders, steps = (numbers[key].unique() for key in ("backbone", "order", "steps"))
    setting = (
        f"Backbones: {', '.join(map(names.backbone, backbones))}. Reveal orders: {'; '.join(map(names.order, orders))}. "
        f"T = {', '.join(map(str, steps))}."
    )
    within = "Gap closure and bold compare the methods of one reveal order and one T."
    return Shown(numbers, columns, rows, [setting, within, *footnotes.reading(names, data, numbers)], labels=3)


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


@table(CROSS, all_backbones, metrics=lambda names: [names.metric])
def crossbb(names: Names, data: Data) -> Shown:
    """Scores in the main metric: a group per backbone, a row per direction. Its CSV has every metric."""
    return backbones_beside(names, data, summary(data, names.metrics))


@table(CROSS.replace("{metric}", "sacreBLEU"), all_backbones, metrics=lambda names: names.named_metrics("bleu"))
def crossbb_bleu(names: Names, data: Data) -> Shown:
    """The same in sacreBLEU."""
    return backbones_beside(names, data, summary(data, names.metrics).query("metric == 'bleu'"))


def backbones_beside(names: Names, data: Data, numbers: pd.DataFrame) -> Shown:
    (metric,) = names.shown_metrics
    methods = [name for name in COMPARED if name in set(numbers["method"])]
    columns = [Column("Backbone", align="l"), Column("Direction", align="l")]
    columns += [Column(names.method(name).short, shaded=name == "ev") for name in methods]
    columns += [Column("EV − Ratio"), *(Column(closure_title(name), shaded=True) for name in baselines(numbers))]
    shown = ranked(names, numbers[numbers["metric"] == metric.name])
    rows = []
    for (backbone, *place), of_place in shown.groupby(["backbone", *PLACE], sort=False):
        of_method = Rows(of_place, *PLACE, "method")
        texts = [names.backbone(backbone), names.place(*place)]
        texts += [score(of_method[*place, name], metric) for name in methods]
        ev = of_method[*place, "ev"]
        texts += [formats.signed(ev.delta_ratio, metric.decimals), *(closure(ev, name) for name in baselines(numbers))]
        rows.append(Row(texts, metric.label))
    return Shown(numbers, columns, rows, [footnotes.setting(names), *footnotes.reading(names, data, numbers)], labels=2)


@figure(
    "Share of the {metric} gap between Fixed Ratio and Oracle that Entropy-Valley closes, by backbone and direction. "
    'Bars are standard deviations over training seeds; "n/a": Oracle does not lead Ratio in any run.',
    all_backbones,
)
def crossbb_figure(names: Names, data: Data) -> Figure:
    """Bars of EV's mean gap closure in per cent with deviations over runs; no gap to close prints n/a."""
    numbers = summary(data, names.metrics[:1]).query("method == 'ev'")
    return Figure(numbers, [functools.partial(_closure_bars, names, numbers)])


def _closure_bars(names: Names, numbers: pd.DataFrame, axes: Axes) -> None:
    backbones = [*numbers["backbone"].unique()]
    places = [*numbers.groupby(PLACE, sort=False)]
    width = SPAN / len(places)
    for index, (place, rows) in enumerate(places):
        offset = (index - (len(places) - 1) / 2) * width
        bars = sorted((backbones.index(row.backbone) + offset, row) for row in rows.itertuples())
        positions = [position for position, _ in bars]
        means, stds = ([100 * getattr(row, f"gap_closure_{one}") for _, row in bars] for one in ("mean", "std"))
        axes.bar(
            positions, means, 0.92 * width, color=style.SERIES_COLOURS[index % len(style.SERIES_COLOURS)],
            label=names.place(*place),
        )  # fmt: skip
        axes.errorbar(positions, means, yerr=stds, fmt="none", ecolor=style.INK, elinewidth=0.9)
        for position, mean, std in zip(positions, means, stds, strict=True):
            text = formats.NOT_AVAILABLE if math.isnan(mean) else formats.minus(f"{mean:.1f}")
            height = 0.0 if math.isnan(mean) else max(0.0, mean + (0.0 if math.isnan(std) else std))
            axes.annotate(
                text, (position, height), (0, 3), textcoords="offset points", ha="center", fontsize=7,
                bbox=style.ON_WHITE,
            )  # fmt: skip
    axes.margins(y=0.1)
    axes.axhline(0, color=style.INK, linewidth=0.7)
    axes.set_xticks(range(len(backbones)), [names.backbone(name) for name in backbones])
    axes.set_xlim(-0.5, len(backbones) - 0.5)  # also of a backbone without a bar
    axes.set_ylabel(f"{names.metric.label} gap closed by EV (%)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(places), handlelength=1)
