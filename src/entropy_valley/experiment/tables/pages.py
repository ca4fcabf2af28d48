"""The sentences of a test set as a page: source, reference, and the outputs of all methods below each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.data.categories import CATEGORIES, categories_of, refused
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell, all_cells
from entropy_valley.experiment.config.methods import declares
from entropy_valley.experiment.frames import further_file
from entropy_valley.experiment.tables import formats, render
from entropy_valley.experiment.tables.coverage import extractors
from entropy_valley.experiment.tables.formats import Names
from entropy_valley.experiment.tables.report import Results, data_of, set_files
from entropy_valley.scoring.metrics import Metric

PagePlace = tuple[str, str]  # direction and test set


def cells(experiment: Experiment) -> dict[PagePlace, list[Cell]]:
    """The cells of each page: the first seed of each backbone, under the order and steps of the main tables."""
    matrix, tables, pages = experiment.matrix, experiment.tables, experiment.pages
    backbones = pages.backbones or [*matrix.backbones, *experiment.autoregressive.backbones]
    methods = pages.methods or matrix.methods
    pages_cells: dict[PagePlace, list[Cell]] = {}
    # Outputs of further seeds would fill the screen.
    for cell in all_cells(experiment):
        first = not cell.pool and cell.seed == matrix.seeds_of.get(cell.backbone, matrix.seeds)[0]
        denoised = cell.method in methods and (cell.order, cell.steps) == (tables.order, tables.steps)
        if first and cell.backbone in backbones and (denoised or not cell.order):
            pages_cells.setdefault((cell.direction, cell.testset), []).append(cell)

    def rank(cell: Cell) -> tuple[bool, int, int]:
        # The main backbone comes first, whatever the matrix lists first.
        method = methods.index(cell.method) if cell.order else len(methods)
        return cell.backbone != tables.backbone, backbones.index(cell.backbone), method

    return {place: sorted(group, key=rank) for place, group in pages_cells.items()}


def inputs(experiment: Experiment, place: PagePlace) -> list[str]:
    shown = _shown(experiment, place)
    return [further_file(experiment.results, "test set", shown[0]), *set_files(experiment, shown)]


def _shown(experiment: Experiment, place: PagePlace) -> list[Cell]:
    shown = cells(experiment)
    if place not in shown:
        names = ", ".join(map(".".join, shown))
        raise InputError(f"the page {'.'.join(place)}", "the config has no such results", f"There is {names}.")
    return shown[place]


def write(experiment: Experiment, place: PagePlace, out: Path) -> None:
    """Write the page of a test set's sentences, of the results in the same folder."""
    direction, testset = place
    shown, (source, target) = _shown(experiment, place), direction.split("-")
    without = refused(direction)  # categories
    columns = ("hypothesis", "source", "target", "length", "canvas")
    data = data_of(Results(out.parents[1]), Names(experiment, shown), columns)
    # A metric of whole systems has nothing to say of a sentence.
    metrics = [metric for metric in data.metrics if metric.segments]
    outputs = [_outputs(data.of([cell]).sentences, metrics) for cell in shown]
    find = extractors(source)
    sentences = []
    for row, *texts in zip(data.sentences.drop_duplicates("id").itertuples(), *outputs, strict=True):
        kinds = () if without else categories_of((row.source, row.target), direction)
        items = [extract(row.source) for extract in find.values()]
        # Lists, not objects: their keys would stand again in each sentence.
        about = [row.id, row.source, row.target, [*map(CATEGORIES.index, kinds)], items]
        sentences.append([*about, texts])
    systems = []
    for cell in shown:
        label, is_main = data.backbone(cell.backbone), cell.backbone == experiment.tables.backbone
        # Only of log-probabilities may the page print a probability for a score.
        gives = bool(cell.order) and declares(experiment, cell.method, "gives_probabilities")
        systems.append([data.method(cell.method).short, label, cell.method, is_main, gives])
    content = {
        "languages": [source.replace("_", "-"), target.replace("_", "-")],  # as HTML has them
        "metrics": [[one.label, one.decimals, 1 if one.higher_is_better else -1] for one in metrics],
        "kinds": list(find),
        "categories": [] if without else CATEGORIES,
        "systems": systems,
        "sentences": sentences,
    }
    render.write_page(out, "sentences", f"{formats.direction(direction)}, {testset}", content)


def _outputs(sentences: pd.DataFrame, metrics: Sequence[Metric]) -> list[list[Any]]:
    """Of each sentence: text, slots, scores; and of methods that compare several candidates, these in ascending order
    and the score of each."""
    outputs = []
    for row in sentences.to_dict("records"):
        # JSON has no NaN.
        scores = [None if pd.isna(row.get(metric.name)) else row[metric.name] for metric in metrics]
        output = [row["hypothesis"], row["length"], scores]
        # A system that writes from left to right has no canvas.
        pairs = sorted(zip(row["canvas"]["candidates"], row["canvas"]["scores"], strict=False)) if row["steps"] else []
        if len(pairs) > 1:
            output += map(list, zip(*pairs, strict=True))
        outputs.append(output)
    return outputs
