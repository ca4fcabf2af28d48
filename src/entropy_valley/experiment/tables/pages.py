"""The sentences of a test set as a page: source, reference, and the outputs of all methods below each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.data.categories import CATEGORIES, LANGUAGES, categories
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell, all_cells
from entropy_valley.experiment.config.methods import declares
from entropy_valley.experiment.config.schema import metrics_of
from entropy_valley.experiment.frames import further_file
from entropy_valley.experiment.tables import formats, render
from entropy_valley.experiment.tables.coverage import extractors
from entropy_valley.experiment.tables.formats import Names
from entropy_valley.experiment.tables.report import Results, data_of, set_files
from entropy_valley.scoring.metrics import Metric
from entropy_valley.texts import base_language

PagePlace = tuple[str, str]  # direction and test set


def cells(experiment: Experiment) -> dict[PagePlace, list[Cell]]:
    """The cells of each page: the first seed of each backbone, under the order and steps of the main tables."""
    matrix, tables, pages = experiment.matrix, experiment.tables, experiment.pages
    backbones = pages.backbones or [*matrix.backbones, *experiment.autoregressive.backbones]
    methods = pages.methods or matrix.methods
    pages_cells: dict[PagePlace, list[Cell]] = {}
    # Outputs of further seeds would fill the screen.
    for cell in all_cells(experiment):
        run = cell.run
        first = not run.pool and run.seed == matrix.seeds_of.get(run.backbone, matrix.seeds)[0]
        denoised = cell.method in methods and (cell.order, cell.steps) == (tables.order, tables.steps)
        if first and run.backbone in backbones and (denoised or not cell.order):
            pages_cells.setdefault((run.direction, cell.testset), []).append(cell)
    # The main backbone comes first, whatever the matrix lists first.
    ranks = {name: rank for rank, name in enumerate([tables.backbone, *backbones])}

    def rank(cell: Cell) -> tuple[int, int]:
        return ranks[cell.backbone], methods.index(cell.method) if cell.order else len(methods)

    return {place: sorted(group, key=rank) for place, group in pages_cells.items()}


def inputs(experiment: Experiment, place: PagePlace) -> list[str]:
    """Every file that a page reads."""
    shown, root = _shown(experiment, place), experiment.results
    return [further_file(root, "test set", shown[0]), *set_files(experiment, root, shown)]


def _shown(experiment: Experiment, place: PagePlace) -> list[Cell]:
    shown = cells(experiment)
    if place not in shown:
        names = ", ".join(map(".".join, shown))
        raise InputError(f"the page {'.'.join(place)}", "the config has no such results", f"There is {names}.")
    return shown[place]


def write(experiment: Experiment, place: PagePlace, out: str, declared: Iterable[str]) -> None:
    """Write the page of a test set's sentences; ``declared`` as of :class:`Results`."""
    write_sentences(out, Results(experiment, Path(out).parents[1], declared), _shown(experiment, place))


def write_sentences(path: str | Path, results: Results, shown: Sequence[Cell]) -> None:
    """Write the page of a test set's sentences, with the outputs of some cells."""
    experiment, (source, target) = results.experiment, shown[0].direction.split("-")
    rules = base_language(source)
    rows = data_of(results, shown, ("hypothesis", "source", "target", "length", "canvas")).sentences
    # A metric of whole systems has nothing to say of a sentence.
    metrics = [metric for metric in metrics_of(experiment.scoring) if metric.segments]
    outputs = [_outputs(rows, cell, metrics) for cell in shown]
    find = extractors(source)
    sentences = []
    for row in rows.drop_duplicates("id").itertuples():
        # Lists, not objects: their keys would stand again in each sentence.
        about = [row.id, row.source, row.target, _categories(row.source, rules)]
        items = [extract(row.source) for extract in find.values()]
        sentences.append([*about, items, [output[row.id] for output in outputs]])
    data = {
        "languages": [source.replace("_", "-"), target.replace("_", "-")],  # as HTML has them
        "metrics": [[one.label, one.decimals, 1 if one.higher_is_better else -1] for one in metrics],
        "kinds": list(find),
        "categories": CATEGORIES if rules in LANGUAGES else [],
        "systems": [_named(experiment, cell) for cell in shown],
        "sentences": sentences,
    }
    render.write_page(path, "sentences", f"{formats.direction(shown[0].direction)}, {shown[0].testset}", data)


def _named(experiment: Experiment, cell: Cell) -> list[Any]:
    """Method and backbone as they are printed, the method's key, whether it is of the main backbone, and whether the
    method's scores are negative log-probabilities."""
    label, main = experiment.backbones[cell.backbone].label, experiment.tables.backbone
    # Only then may the page print a probability for a score.
    gives = bool(cell.order) and declares(experiment, cell.method, "gives_probabilities")
    return [Names(experiment).method(cell.method).short, label, cell.method, cell.backbone == main, gives]


def _categories(text: str, language: str) -> list[int]:
    return [CATEGORIES.index(name) for name in categories(text, language)] if language in LANGUAGES else []


def _outputs(sentences: pd.DataFrame, cell: Cell, metrics: Sequence[Metric]) -> dict[str, list[Any]]:
    """By sentence: text, slots, scores, and the candidates with the score of each, of methods that compare some."""
    key = {"pool": "", **cell.key()}
    rows = sentences[(sentences[[*key]] == [*key.values()]).all(axis=1)]
    texts = {}
    for row in rows.to_dict("records"):
        # JSON has no NaN.
        scores = [None if pd.isna(row.get(metric.name)) else row[metric.name] for metric in metrics]
        curve = [] if cell.autoregressive else _curve(row["canvas"])
        texts[row["id"]] = [row["hypothesis"], row["length"], scores, *curve]
    return texts


def _curve(canvas: Mapping[str, Any]) -> list[list[float]]:
    """Candidates, in ascending order, and their scores; nothing where there are not two."""
    pairs = sorted(zip(canvas["candidates"], canvas["scores"], strict=False))
    return [list(one) for one in zip(*pairs, strict=True)] if len(pairs) > 1 else []
