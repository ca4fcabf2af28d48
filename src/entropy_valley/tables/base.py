"""What every table and figure has: its cells, what its numbers depend on, how it is made from files and written.

A report is a class in a file of this folder. The workflow asks it for ``cells``, ``inputs`` and ``params``, which
know the config. Its script then makes it from the params alone, by ``numbers`` and ``table`` or ``panels``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from entropy_valley import files, revisions
from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell, sets_of, study_cells
from entropy_valley.config.methods import base_method, method_settings
from entropy_valley.config.schema import Study, metrics_of
from entropy_valley.results import DIAGNOSTICS
from entropy_valley.stats.closure import summarise
from entropy_valley.tables import labels, latex, notes, render, style
from entropy_valley.tables.render import Note, Table
from entropy_valley.tables.style import Panel


class Report:
    """A table or figure of some cells; ``key`` is its name in the registry, ``name`` its file's.

    ``caption`` is its text in print and in Snakemake's report, where ``{metric}`` stands for the label of the main
    metric and ``{metrics}`` for those of the main table.
    ``endings`` are those of the files that it writes, by ``rule``.
    ``scored``: its numbers come from the translations and scores of its cells.
    """

    caption: ClassVar[str]
    rule: ClassVar[str]
    endings: ClassVar[Sequence[str]]
    scored: ClassVar[bool] = True

    def __init__(self, key: str = "", name: str = "", text: str = "") -> None:
        """``text`` is the caption as :meth:`described`, for the script, which does not know the config."""
        self.key, self.name, self.text = key, name, text or self.caption

    def cells(self, experiment: Experiment) -> list[Cell]:
        """The cells whose results it shows; none where the config does not ask for it."""
        raise NotImplementedError

    def wanted(self, experiment: Experiment) -> bool:
        """Whether the config asks for it; unless said otherwise, whether it has cells."""
        return bool(self.cells(experiment))

    def ready(self, experiment: Experiment) -> bool:
        """Whether ``rule all`` and the document have it: not while it waits for people's work."""
        return True

    def comparable(self, experiment: Experiment) -> bool:
        """Whether the paper's numbers may stand beside its own: they are there, and not simulated."""
        return self.ready(experiment)

    def extra(self, experiment: Experiment, cells: Sequence[Cell]) -> dict[str, Any]:
        """Params beside those that every report has, as plain values."""
        return {}

    def inputs(self, experiment: Experiment) -> list[str]:
        """Every file that it reads: of one that is ``scored`` the translations and scores of its cells."""
        return set_files(experiment, self.cells(experiment)) if self.scored else []

    def params(self, experiment: Experiment) -> dict[str, Any]:
        """What its numbers and texts depend on, as plain values."""
        cells = self.cells(experiment)
        return {**shared_params(experiment, cells), **self.extra(experiment, cells)}

    def described(self, experiment: Experiment) -> str:
        """The caption with the labels of metrics."""
        metrics = metrics_of(experiment.scoring)
        names = experiment.tables.metrics or [metric.name for metric in metrics[:2]]
        listed = " and ".join(metric.label for name in names for metric in metrics if metric.name == name)
        return self.caption.replace("{metric}", metrics[0].label).replace("{metrics}", listed)

    def numbers(self, params: Any) -> pd.DataFrame:
        """The tidy frame that its CSV holds; unless said otherwise, means over runs."""
        return summarise(params.cells, params.metrics)

    def write(self, params: Any, **paths: Path) -> None:
        """Make it and write its files, one path for each ending: all of them, or none if it cannot be made."""
        with files.atomic_together(paths) as new:
            self.make(params, **new)

    def make(self, params: Any, **paths: Path) -> None:
        """Make it and write its files."""
        render.write_csv(paths["csv"], self.numbers(params))


class TableReport(Report):
    """A table in LaTeX, bare and with its caption, in Markdown and as a page, and its numbers."""

    rule, endings = "table", ("tex", "float.tex", "md", "html", "csv")

    def inputs(self, experiment: Experiment) -> list[str]:
        overlaps = _overlaps(experiment, self.cells(experiment) if self.scored else []).values()
        return [*super().inputs(experiment), *(path for tests in overlaps for path in tests.values())]

    def table(self, params: Any, numbers: pd.DataFrame) -> Table:
        """Columns, rows and how to read them; the lines about what the numbers were made by come from :meth:`made`."""
        raise NotImplementedError

    def made(self, params: Any) -> tuple[Table, pd.DataFrame]:
        """The whole table and its numbers.

        Raises :class:`InputError` for cells that do not belong into one table, see :func:`notes.provenance`.
        """
        provenance: tuple[Note, ...] = notes.provenance(params)  # first: only comparable numbers may be subtracted
        numbers = self.numbers(params)
        table = self.table(params, numbers)
        return dataclasses.replace(table, notes=(*table.notes, *provenance)), numbers

    def make(self, params: Any, **paths: Path) -> None:
        table, numbers = self.made(params)
        files.write_text(paths["tex"], latex.to_latex(table))
        files.write_text(paths["float.tex"], latex.to_latex(table, self.text, f"tab:{self.name}"))
        files.write_text(paths["md"], render.to_markdown(table))
        files.write_text(paths["html"], render.page(render.title(self.name), table, self.text))
        render.write_csv(paths["csv"], numbers)


class FigureReport(Report):
    """Panels as PDF and PNG, and the plotted numbers."""

    rule, endings = "figure", ("pdf", "png", "csv")
    width, height = style.COLUMN, 2.7  # inches of a panel

    def numbers(self, params: Any) -> pd.DataFrame:
        """What is plotted; unless said otherwise, means over runs in the main metric."""
        summary = summarise(params.cells, params.metrics)
        return summary[summary["metric"] == params.metric.name]

    def panels(self, params: Any, numbers: pd.DataFrame) -> list[Panel]:
        """A function that draws each panel."""
        raise NotImplementedError

    def panel_height(self, numbers: pd.DataFrame) -> float:
        return self.height

    def make(self, params: Any, **paths: Path) -> None:
        numbers = self.numbers(params)
        panels, height = self.panels(params, numbers), self.panel_height(numbers)
        style.save(style.draw(*panels, width=self.width, height=height), pdf=paths["pdf"], png=paths["png"])
        render.write_csv(paths["csv"], numbers)


class OfTables(Report):
    """A report of other reports' CSV files; ``made`` are the reports of the config, by folder and file."""

    made: Sequence[str] = ()

    def csv_files(self, experiment: Experiment, names: Iterable[str]) -> dict[str, str]:
        """The CSV files of those named tables that the config has."""
        return {
            name: f"{experiment.results}/tables/{name}.csv"
            for name in dict.fromkeys(names)
            if f"tables/{name}" in self.made
        }


class OfStudy(Report):
    """A report of each study of a layout, under the study's name; ``tells_pools`` if it can show runs that differ in
    their pool of training pairs."""

    tells_pools: ClassVar[bool] = False

    def cells(self, experiment: Experiment) -> list[Cell]:
        return study_cells(experiment, self.name)

    def problems(self, experiment: Experiment, study: Study, cells: Sequence[Cell]) -> Iterator[str]:
        """What its layout needs and a study's cells lack, each as the end of a sentence about the study."""
        yield from ()


def shared_params(experiment: Experiment, cells: Sequence[Cell]) -> dict[str, Any]:
    """The params that every report has."""
    backbones = dict.fromkeys(cell.run.backbone for cell in cells)
    directions = dict.fromkeys(cell.run.direction for cell in cells)
    return {
        "revision": revisions.REPORTING,
        "metrics": [dataclasses.asdict(metric) for metric in metrics_of(experiment.scoring)],
        **experiment.analysis.params,
        "cells": [{**cell.key(), "path": sets_of(experiment).folder(cell)} for cell in cells],
        "labels": {
            "backbones": {name: experiment.backbones[name].label for name in backbones},
            "directions": {name: labels.direction(name) for name in directions},
            **_method_labels(experiment, cells),
        },
        "ratios": _fixed_ratios(experiment, cells),
        "overlaps": _overlaps(experiment, cells),
    }


def _method_labels(experiment: Experiment, cells: Sequence[Cell]) -> dict[str, dict[str, str]]:
    """The names that the config gives to methods of the cells; nothing where it gives none."""
    blocks = dict(experiment.length_methods)
    named = {cell.method: block.label for cell in cells if (block := blocks.get(cell.method)) and block.label}
    return {"methods": named} if named else {}


def _overlaps(experiment: Experiment, cells: Sequence[Cell]) -> dict[str, dict[str, str]]:
    """Where the test sentences are counted that occur in training, of cells whose backbone is fine-tuned."""
    overlaps: dict[str, dict[str, str]] = {}
    for cell in cells:
        if not experiment.backbones[cell.run.backbone].zero_shot:
            place = f"{experiment.results}/corpus/{cell.run.direction}/overlap/{cell.testset}.json"
            overlaps.setdefault(cell.run.direction, {})[cell.testset] = place
    return overlaps


def _fixed_ratios(experiment: Experiment, cells: Sequence[Cell]) -> dict[str, dict[str, float]]:
    """The ratio of Fixed Ratio, and of each method of the cells that is one too, in each direction."""
    places = dict.fromkeys((name, cell.run.direction) for cell in cells for name in ("ratio", cell.method))
    ratios: dict[str, dict[str, float]] = {}
    for name, direction in places:
        if name in dict(experiment.length_methods) and base_method(experiment, name) == "ratio":
            ratios.setdefault(name, {})[direction] = method_settings(experiment, name, direction)["ratios"]
    return ratios


def of_one_backbone(what: str, cells: Sequence[Cell]) -> Iterator[str]:
    """The problem of a report that tells no backbones apart."""
    if len({cell.run.backbone for cell in cells}) > 1:
        yield f"{what} is of one backbone; name one"


def set_files(experiment: Experiment, cells: Sequence[Cell]) -> list[str]:
    """The translations and scores of the sets where cells are at home, each file once."""
    homes = dict.fromkeys(sets_of(experiment).home[cell] for cell in cells)
    return [path for one in homes for path in one.files(experiment.results)]


def diagnostics_files(experiment: Experiment, cells: Sequence[Cell]) -> list[str]:
    """The diagnostics of each run that cells have, each once."""
    return list(dict.fromkeys(f"{cell.run.folder(experiment.results)}/{DIAGNOSTICS}" for cell in cells))


def tokens_file(experiment: Experiment, cell: Cell) -> str:
    """The token counts of a cell's test set, under the tokenizer of its backbone."""
    return f"{experiment.results}/{cell.run.direction}/{cell.run.backbone}/tokens/{cell.testset}.jsonl"


def testset_file(experiment: Experiment, cell: Cell) -> str:
    """The sentences of a cell's test set."""
    return f"{experiment.results}/corpus/{cell.run.direction}/test/{cell.testset}.jsonl"
