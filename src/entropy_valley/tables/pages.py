"""The sentences of a test set as a page: source, reference, and the outputs of all methods below each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files, provenance
from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell, all_cells
from entropy_valley.data.categories import CATEGORIES, LANGUAGES, categories
from entropy_valley.errors import InputError
from entropy_valley.stats.cells import Params, ScoredCell
from entropy_valley.stats.closure import require_sentences
from entropy_valley.tables import labels, render
from entropy_valley.tables.base import set_files, shared_params, testset_file
from entropy_valley.tables.coverage import extractors

PagePlace = tuple[str, str]  # direction and test set


def cells(experiment: Experiment) -> dict[PagePlace, list[Cell]]:
    """The cells of each page: the first seed of each backbone, under the order and steps of the main tables."""
    matrix, tables, pages = experiment.matrix, experiment.tables, experiment.pages
    backbones = pages.backbones or [*matrix.backbones, *experiment.autoregressive.backbones]
    methods, pages_cells = pages.methods or matrix.methods, {}
    for cell in all_cells(experiment):
        run = cell.run
        first = not run.pool and run.seed == matrix.seeds_of.get(run.backbone, matrix.seeds)[0]
        denoised = cell.method in methods and (cell.order, cell.steps) == (tables.order, tables.steps)
        if first and run.backbone in backbones and (denoised or not cell.order):
            pages_cells.setdefault((run.direction, cell.testset), []).append(cell)
    ranks = {name: rank for rank, name in enumerate([tables.backbone, *backbones])}
    order = [*methods]
    return {
        place: sorted(
            group, key=lambda cell: (ranks[cell.run.backbone], order.index(cell.method) if cell.order else len(order))
        )
        for place, group in pages_cells.items()
    }


def inputs(experiment: Experiment, place: PagePlace) -> list[str]:
    """Every file that a page reads."""
    shown = _shown(experiment, place)
    return [testset_file(experiment, shown[0]), *set_files(experiment, shown)]


def params(experiment: Experiment, place: PagePlace) -> dict[str, Any]:
    """What a page depends on, the backbone ``main`` first, and where the ``sentences`` are."""
    shown = _shown(experiment, place)
    own = {"sentences": testset_file(experiment, shown[0]), "main": experiment.tables.backbone}
    return {**shared_params(experiment, shown), **own}


def _shown(experiment: Experiment, place: PagePlace) -> list[Cell]:
    shown = cells(experiment)
    if place not in shown:
        names = ", ".join(map(".".join, shown))
        raise InputError(f"the page {'.'.join(place)}", "the config has no such results", f"There is {names}.")
    return shown[place]


def make_sentences(params: Mapping[str, Any], how: Mapping[str, Any], out: str) -> None:
    """Make a page and the record of all that it read. ``how`` says where the results are: ``root`` as the params of its
    rule have it, ``here`` for this process."""
    values = Params.of(params, how)
    with provenance.made("page", params, [], [out]) as record, files.noted(record.inputs):
        write_sentences(out, values)


def write_sentences(path: str | Path, params: Params) -> None:
    """Write the page of a test set's sentences."""
    first, rows = params.cells[0], files.read_jsonl(params["sentences"], ("id", "source", "target"))
    ids = [row["id"] for row in rows]
    source, target = first.direction.split("-")
    metrics = [metric for metric in params.metrics if metric.segments]
    find, outputs = extractors(source), [_outputs(cell, params, ids) for cell in params.cells]
    data = {
        "languages": [source, target],
        "metrics": [[one.label, one.decimals, 1 if one.higher_is_better else -1] for one in metrics],
        "kinds": list(find),
        "categories": CATEGORIES if source in LANGUAGES else [],
        "systems": [_named(cell, params) for cell in params.cells],
        "sentences": [
            [
                *(row["id"], row["source"], row["target"], _categories(row["source"], source)),
                [extract(row["source"]) for extract in find.values()],
                [system[row["id"]] for system in outputs],
            ]
            for row in rows
        ],
    }
    render.write_page(path, "sentences", f"{params.label('directions', first.direction)}, {first.testset}", data)


def _named(cell: ScoredCell, params: Params) -> list[Any]:
    """Method and backbone as they are printed, the method's key, and whether it is of the main backbone."""
    method = labels.method(cell.method).short
    return [method, params.label("backbones", cell.backbone), cell.method, cell.backbone == params["main"]]


def _categories(text: str, language: str) -> list[int]:
    return [CATEGORIES.index(name) for name in categories(text, language)] if language in LANGUAGES else []


def _outputs(cell: ScoredCell, params: Params, ids: Sequence[str]) -> dict[str, list[Any]]:
    """By sentence: text, slots, scores, and the candidates with the score of each, of methods that compare some."""
    outputs = {row["id"]: row for row in cell.translations()}
    scores = {row["id"]: row for row in cell.segments()}
    for path, rows in ((cell.translations_file, outputs), (cell.scores_file, scores)):
        require_sentences(cell.within(path), rows, params["sentences"], ids)
    canvases = {} if cell.autoregressive else {row["id"]: row for row in cell.canvases("candidates", "scores")}
    metrics, texts = [metric for metric in params.metrics if metric.segments], {}
    for name, row in outputs.items():
        values = [scores[name].get(metric.name) for metric in metrics]
        texts[name] = [row["hypothesis"], row["length"], values, *_curve(canvases.get(name))]
    return texts


def _curve(canvas: Mapping[str, Any] | None) -> list[list[float]]:
    """Candidates, in ascending order, and their scores; nothing where there are not two."""
    pairs = sorted(zip(canvas["candidates"], canvas["scores"], strict=False)) if canvas else []
    return [list(one) for one in zip(*pairs, strict=True)] if len(pairs) > 1 else []
