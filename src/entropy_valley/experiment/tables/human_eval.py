"""The tables and the figure of the human evaluation."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from entropy_valley import files
from entropy_valley.experiment.config import Experiment, matrix, params
from entropy_valley.experiment.human_evaluation import statistics
from entropy_valley.experiment.human_evaluation.pack import BUCKETS
from entropy_valley.experiment.human_evaluation.settings import POOLED
from entropy_valley.experiment.human_evaluation.statistics import PREFERENCES, SCALES
from entropy_valley.experiment.stats.significance import spearman
from entropy_valley.experiment.tables import formats
from entropy_valley.experiment.tables.report import Data, Figure, Names, Row, Shown, aligned, figure, table
from entropy_valley.experiment.tables.scores import main_cells
from entropy_valley.experiment.tables.style import INK, METHOD_COLOURS, SERIES_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- What annotators say of two systems: a table, and a table of details.

Values = Mapping[str, float]  # statistics by their names
Key = tuple[str, str, str]  # direction, annotator, bucket
SIMULATED = "The annotators are simulated, by rules: these numbers say nothing of people's judgements."
PREFERRED = "Preference: sentences on which the first system, the second one, or neither is preferred."
MAJORITY = (
    "Preference of all: what more than half of the annotators of a sentence chose; without such a majority, as in a "
    "three-way split, it is a tie."
)
TESTS = (
    "Two-sided p: Wilcoxon's signed-rank test; of all annotators on their mean for each sentence. Sign test: "
    "majorities without ties. *, **, ***: p below 0.05, 0.01, 0.001, not corrected for the number of tests. N needed: "
    "sentences for 80 % power at 5 %, were the observed difference the true one."
)
AGREEMENT = (
    "On the sentences that all annotators rated. Kendall's W, with ties, of the ranks of sentences: lowest and highest "
    "of the four scores. Krippendorff's α: ordinal of scores, nominal of preferences. ρ is Spearman's; of both: of "
    "adequacy and of fluency."
)


def evaluated_cells(experiment: Experiment) -> list[matrix.Cell]:
    """Both systems of each direction."""
    directions = matrix.evaluated_directions(experiment)
    return [cell for name in directions for cell in matrix.evaluated_cells(experiment, name)]


def is_ready(names: Names) -> bool:
    """Whether each direction has filled forms: without them, only who asks for it is told what to do."""
    return all(params.filled_forms(names.experiment, name) for name in directions_of(names))


def is_comparable(names: Names) -> bool:
    """The paper's are EV and Fixed Ratio of the main backbone."""
    # With other systems or simulated annotators, the paper asks another question.
    of_paper = [cell.method for cell in names.listed] == ["ev", "ratio"] * len(directions_of(names))
    among_main = {*names.listed} <= {*main_cells(names.experiment)}
    return is_ready(names) and not names.experiment.human_evaluation.simulated and of_paper and among_main


RATED: dict[str, Any] = {
    "cells": evaluated_cells,
    "files": lambda names: [f"{names.experiment.results}/{_file(name)}" for name in directions_of(names)],
    "ready": is_ready,
    "comparable": is_comparable,
    "sentences": lambda names: f"N = {packed(names)} sentences.",  # of a pack, which are some of a test set's
}


def directions_of(names: Names) -> list[str]:
    return matrix.evaluated_directions(names.experiment)


def packed(names: Names) -> int:
    return sum(names.experiment.human_evaluation.sentences.model_dump().values())


def _file(direction: str) -> str:
    """The ratings of a direction, below the folder of results."""
    return f"human_evaluation/{direction}/ratings.jsonl"


def ratings(data: Data, direction: str) -> pd.DataFrame:
    """The ratings of a direction, see :func:`statistics.frame`."""
    rows = files.read_jsonl(data.files.file(f"{data.files.root}/{_file(direction)}"), ("annotator", "id", "preference"))
    return statistics.frame(rows)


def values_of(data: Data) -> dict[Key, Values]:
    """The statistics of each direction, annotator (``all``: together) and bucket ("": all of them)."""
    how = data.statistics
    values: dict[Key, Values] = {}
    for direction in directions_of(data):
        rows = ratings(data, direction)
        for name, given in rows.groupby("annotator", sort=False):
            values[direction, str(name), ""] = statistics.of_annotator(given, how)
        # All together is not the sum of the annotators: it is their mean for each sentence.
        values[direction, POOLED, ""] = statistics.of_all(rows, how) | statistics.agreement(rows)
        for bucket in BUCKETS:
            # Buckets were chosen by the metric, so the ρ of all sentences overstates it.
            means = rows[rows["bucket"] == bucket].groupby("id")[[*SCALES, "difference"]].mean()
            values[direction, POOLED, bucket] = {"sentences": len(means), **statistics.correlations(means)}
    return values


def tidy(values: Mapping[Key, Values]) -> pd.DataFrame:
    rows = [(*key, *item) for key, of_key in values.items() for item in of_key.items()]
    return pd.DataFrame(rows, columns=["direction", "annotator", "bucket", "statistic", "value"])


def systems(names: Names, direction: str) -> list[str]:
    """The two systems of a direction as tables print them, the first one first, with what else they differ in."""
    labels, others = [], []
    for cell in matrix.evaluated_cells(names.experiment, direction):
        labels.append(names.method(cell.method).short)
        others.append(
            [names.backbone(cell.backbone), names.order(cell.order), f"T = {cell.steps}", f"seed {cell.seed}"]
        )
    for first, second in zip(*others, strict=True):
        # Only what tells the two systems apart is printed.
        if first != second:
            labels = [f"{labels[0]}, {first}", f"{labels[1]}, {second}"]
    return labels


def rated(names: Names, values: Mapping[Key, Values]) -> Iterator[str]:
    """How many sentences each annotator rated, where not all; and whether they are people."""
    people, sentences = names.experiment.human_evaluation, packed(names)
    # Simulated ratings look like any others.
    if people.simulated:
        yield SIMULATED
    for direction in directions_of(names):
        counts = {}
        for name in people.annotators:
            counts[name] = int(values.get((direction, name, ""), {}).get("sentences", 0))
        # A table of half of the ratings looks like any other.
        if set(counts.values()) != {sentences}:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            yield f"Partial: of the {sentences} sentences of {formats.direction(direction)} were rated by {listed}."


@table(
    "Adequacy and fluency by human annotators, 1 to 5: first system minus second, and which one they prefer.", **RATED
)
def human_eval(data: Data) -> Shown:
    """Mean differences and majority preferences, a row for each direction."""
    values, rows = values_of(data), []
    for name in directions_of(data):
        of_all = values[name, POOLED, ""]
        shown = [formats.signed(of_all[scale], 2) for scale in SCALES]
        texts = [formats.direction(name), " − ".join(systems(data, name)), *shown, _preferences(of_all)]
        rows.append(Row([*texts, f"{of_all['sentences']:.0f}"]))
    scales = [f"Δ {scale.capitalize()}" for scale in SCALES]
    columns = aligned("l", "Direction") + aligned("c", "Systems", *scales, "Preference") + aligned("r", "N")
    return Shown(tidy(values), columns, rows, [PREFERRED, MAJORITY, *rated(data, values)])


@table(
    "The human evaluation annotator by annotator: differences, preferences and tests; agreement of annotators, and "
    "Spearman's correlation of the differences in {metric} and in their scores, also by bucket.",
    **RATED,
)
def human_eval_details(data: Data) -> Shown:
    """Each annotator, all together, their agreement, and the metric beside them."""
    values, rows = values_of(data), []
    for name in directions_of(data):
        section = f"{formats.direction(name)}, {' − '.join(systems(data, name))}"
        rows += [Row(texts, section) for texts in _details(data, values, name)]
    columns = aligned("l", "") + aligned("c", *data.experiment.human_evaluation.annotators, "All")
    return Shown(tidy(values), columns, rows, [PREFERRED, MAJORITY, TESTS, AGREEMENT, *rated(data, values)])


def _details(names: Names, values: Mapping[Key, Values], direction: str) -> Iterator[list[str]]:
    """The rows of a direction: what each annotator and all have, then what only all together have."""
    # An annotator may have no form yet.
    people = [values.get((direction, name, "")) for name in names.experiment.human_evaluation.annotators]
    every = values[direction, POOLED, ""]
    each, number, label = [*people, every], formats.number, names.metric.label
    for scale in SCALES:
        yield [f"Δ {scale.capitalize()}", *(formats.signed(one[scale], 2) if one else formats.NONE for one in each)]
        yield ["   Wilcoxon's p", *(formats.stars(one[f"{scale}_p"]) if one else formats.NONE for one in each)]
    yield ["Preference", *(_preferences(one) if one else formats.NONE for one in each)]
    of_all = {}
    for scale in SCALES:
        interval = formats.interval(every[scale], every[f"{scale}_low"], every[f"{scale}_high"], 2)
        of_all[f"Δ {scale.capitalize()}, 95 % CI"] = interval
    of_all["Sign test of majorities, p"] = formats.stars(every["sign_p"])
    # A difference of 0 needs infinitely many sentences.
    for scale in SCALES:
        needed = every[f"{scale}_needed"]
        of_all[f"N needed, {scale}"] = "∞" if math.isinf(needed) else number(needed, 0)
    of_all["Fleiss' κ of preferences"] = number(every["kappa"], 3)
    of_all["Kendall's W"] = f"{number(every['w_low'], 2)} to {number(every['w_high'], 2)}"
    for name in (*SCALES, "preference"):
        of_all[f"Krippendorff's α, {name}"] = number(every[f"{name}_alpha"], 3)
    for scale in SCALES:
        rho, p = every[f"{scale}_rho"], every[f"{scale}_rho_p"]
        text = f"{formats.signed(rho, 3)} (p = {formats.small_p(p)})"
        of_all[f"ρ of Δ{label} and Δ{scale}"] = formats.NOT_AVAILABLE if math.isnan(rho) else text
    # The names of buckets say first and second; readers know the systems.
    first, second = systems(names, direction)
    buckets = {"first_best": f"{first} best", "second_best": f"{second} best", "tied": "tied", "random": "random"}
    for bucket in BUCKETS:
        rhos = (formats.signed(values[direction, POOLED, bucket][f"{scale}_rho"], 2) for scale in SCALES)
        of_all[f"ρ of both, {buckets[bucket]}"] = " / ".join(rhos)
    for title, text in of_all.items():
        yield [title, *[formats.NONE] * len(people), text]


def _preferences(values: Values) -> str:
    return " / ".join(f"{values[name]:.0f}" for name in PREFERENCES)


# --- What annotators say of two systems, as a figure.


@figure(
    "Human evaluation, a row for each direction; the paper draws En→Zh. Left: adequacy by annotator, both systems; "
    "boxes are quartiles, diamonds means. Right: a point for each sentence, difference in {metric} and mean difference "
    "in adequacy, with Spearman's correlation.",
    **RATED,
)
def human_eval_figure(data: Data) -> Figure:
    """A row for each direction: adequacy by annotator and system; the metric's difference beside that of adequacy. The
    numbers are the ratings that are drawn."""
    parts, panels = [], []
    for name in directions_of(data):
        rows = ratings(data, name).assign(direction=name)
        parts.append(rows)
        panels += [functools.partial(draw, data, name, rows) for draw in (_boxes, _scatter)]
    columns = ["direction", "annotator", "id", "bucket", "difference", "first_adequacy", "second_adequacy", "adequacy"]
    return Figure(pd.concat(parts, ignore_index=True)[columns], panels, width=3.15, height=2.5)


def _boxes(names: Names, direction: str, rows: pd.DataFrame, axes: Axes) -> None:
    cells, people = matrix.evaluated_cells(names.experiment, direction), names.experiment.human_evaluation
    colours = [METHOD_COLOURS.get(cell.method, SERIES_COLOURS[at]) for at, cell in enumerate(cells)]
    # In the order of the config.
    annotators = [name for name in people.annotators if name in set(rows["annotator"])]
    pairs = zip(("first", "second"), systems(names, direction), colours, strict=True)
    for number, (system, label, colour) in enumerate(pairs):
        given = [rows.loc[rows["annotator"] == name, f"{system}_adequacy"] for name in annotators]
        places = np.arange(len(annotators)) + (number - 0.5) * 0.36
        boxes = axes.boxplot(given, positions=places, widths=0.3, manage_ticks=False)
        for box in boxes["boxes"]:
            box.set_facecolor(colour)
        # A box has no handle for a legend.
        axes.plot([], [], color=colour, linewidth=6, label=label)
    axes.set_xticks(np.arange(len(annotators)), annotators)
    axes.set_yticks(range(1, 6))
    axes.set_ylabel("adequacy")
    axes.set_title(formats.direction(direction) + (" (simulated)" if people.simulated else ""))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)


def _scatter(names: Names, direction: str, rows: pd.DataFrame, axes: Axes) -> None:
    means = rows.groupby("id")[["adequacy", "difference"]].mean()
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.scatter(means["difference"], means["adequacy"], s=12, color=SERIES_COLOURS[3], alpha=0.6, linewidth=0)
    axes.set_xlabel(f"Δ {names.metric.label} ({' − '.join(systems(names, direction))})")
    axes.set_ylabel("mean Δ adequacy")
    rho, p = spearman(means["difference"], means["adequacy"])
    of_p = "" if math.isnan(p) else " (p < 0.001)" if p < 0.001 else f" (p = {formats.small_p(p)})"
    axes.set_title(f"Spearman's ρ = {formats.number(rho, 3)}{of_p}")
