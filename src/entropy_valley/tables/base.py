"""What every table and figure has: its cells, what it reads, how it is made from results, and how it is written.

A report is a class in a file of this folder, made for a config. The workflow asks it for its ``inputs``. Its script
then makes it from these by ``numbers`` and ``table`` or ``panels``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from entropy_valley import files
from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell, sets_of, study_cells, table_cells
from entropy_valley.scoring.metrics import Metric
from entropy_valley.tables import notes, render, style
from entropy_valley.tables.names import Names
from entropy_valley.tables.of_results import summarise
from entropy_valley.tables.reader import Results, overlap_file, set_files
from entropy_valley.tables.render import Table
from entropy_valley.tables.style import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Report(Names):
    """A table or figure of a config; ``key`` is its name in the registry, ``name`` its file's.

    ``caption`` is its text in print and in Snakemake's report, where ``{metric}`` stands for the label of the main
    metric and ``{metrics}`` for those of the main table.
    ``endings`` are those of the files that it writes, by ``rule``.
    ``scored``: its numbers come from the scores of its cells, and from what the headers of their translations say.
    ``texts``: they come from the translation of each sentence, too. ``reads``: other files of each cell that it reads.
    ``bleu``: it prints BLEU beside the main metric.
    ``recorded`` are the attributes that its record keeps, beside what :meth:`facts` says of every report.
    """

    caption: ClassVar[str]
    rule: ClassVar[str]
    endings: ClassVar[Sequence[str]]
    scored: ClassVar[bool] = True
    texts: ClassVar[bool] = False
    reads: ClassVar[Sequence[Callable[[str, Cell], str]]] = ()
    bleu: ClassVar[bool] = True
    recorded: ClassVar[Sequence[str]] = ()

    def __init__(self, experiment: Experiment, key: str = "", name: str = "") -> None:
        self.experiment, self.key, self.name = experiment, key, name

    # What it is of.

    @functools.cached_property
    def cells(self) -> list[Cell]:
        """The cells whose results it shows; none where it is of no cells, or the config does not ask for it."""
        return []

    @functools.cached_property
    def main_cells(self) -> list[Cell]:
        """The cells of the main table: the main backbone's, under one reveal order and step budget."""
        return table_cells(self.experiment, self.experiment.tables.backbone)

    @property
    def wanted(self) -> bool:
        """Whether the config asks for it; unless said otherwise, whether it has cells."""
        return bool(self.cells)

    @property
    def ready(self) -> bool:
        """Whether ``rule all`` and the document have it: not while it waits for people's work."""
        return True

    @property
    def comparable(self) -> bool:
        """Whether the paper's numbers may stand beside its own: they are there, and not simulated."""
        return self.ready

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        """The metrics that are printed."""
        return self.named_metrics(self.metric.name, *["bleu"] * self.bleu)

    @property
    def text(self) -> str:
        """The caption with the labels of metrics."""
        listed = " and ".join(metric.label for metric in self.main_metrics)
        return self.caption.replace("{metric}", self.metric.label).replace("{metrics}", listed)

    # What it reads, and what it makes of that.

    def inputs(self) -> list[str]:
        """Every file that it reads: of one that is ``scored`` those of the sets of its cells, then ``reads``."""
        root = self.experiment.results
        of_sets = set_files(self.experiment, root, self.read_cells, self.texts) if self.scored else []
        return [*of_sets, *dict.fromkeys(file(root, cell) for file in self.reads for cell in self.cells)]

    @property
    def read_cells(self) -> Iterable[Cell]:
        """The cells behind its inputs; unless said otherwise its own."""
        return self.cells

    def facts(self, root: str) -> dict[str, Any]:
        """What its record says of it, for `entropy-valley verify`, which computes its numbers again."""
        cells = [{**cell.key(), "path": sets_of(self.experiment).home[cell].folder(root)} for cell in self.cells]
        return {
            "cells": cells,
            "metrics": [dataclasses.asdict(metric) for metric in self.metrics],
            **self.statistics.model_dump(),
            **{name: getattr(self, name) for name in self.recorded},
        }

    def numbers(self, results: Results) -> pd.DataFrame:
        """The tidy frame that its CSV holds; unless said otherwise, means over runs."""
        return summarise(results, self.cells, self.metrics)

    def make(self, results: Results, **paths: Path) -> None:
        """Make it and write its files, one path for each ending."""
        render.write_csv(paths["csv"], self.numbers(results))


class TableReport(Report):
    """A table in LaTeX, bare and with its caption, in Markdown and as a page, and its numbers."""

    rule, endings = "table", ("tex", "float.tex", "md", "html", "csv")

    @functools.cached_property
    def overlapping(self) -> list[Cell]:
        """A cell of each direction and test set that a fine-tuned backbone has: some sentences may be in training."""
        cells = self.cells if self.scored else []
        trained = [cell for cell in cells if not self.experiment.backbones[cell.backbone].zero_shot]
        of_place = {(cell.direction, cell.testset): cell for cell in trained}
        places = dict.fromkeys((cell.direction, cell.testset) for cell in cells)
        return [of_place[place] for place in places if place in of_place]

    def inputs(self) -> list[str]:
        return [*super().inputs(), *(overlap_file(self.experiment.results, cell) for cell in self.overlapping)]

    def sentences(self, results: Results) -> str:
        """Of how many sentences its numbers are; unless said otherwise, of all of its test sets."""
        return notes.sentences(self, results)

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        """Columns, rows and how to read them; the lines about what the numbers were made by come from :meth:`made`."""
        raise NotImplementedError

    def made(self, results: Results) -> tuple[Table, pd.DataFrame]:
        """The whole table and its numbers.

        Raises :class:`InputError` for cells that do not belong into one table, see :func:`notes.provenance`.
        """
        # First: only comparable numbers may be subtracted.
        lines, signed = notes.provenance(self, results) if self.scored else ((), ())
        numbers = self.numbers(results)
        table = self.table(results, numbers)
        notes_of_all, signatures = (*table.notes, *lines), (*table.signatures, *signed)
        return dataclasses.replace(table, notes=notes_of_all, signatures=signatures), numbers

    def make(self, results: Results, **paths: Path) -> None:
        table, numbers = self.made(results)
        files.write_text(paths["tex"], render.to_latex(table))
        files.write_text(paths["float.tex"], render.to_latex(table, self.text, f"tab:{self.name}"))
        files.write_text(paths["md"], render.to_markdown(table))
        files.write_text(paths["html"], render.page(render.title(self.name), table, self.text))
        render.write_csv(paths["csv"], numbers)


class FigureReport(Report):
    """Panels as PDF and PNG, and the plotted numbers."""

    rule, endings = "figure", ("pdf", "png", "csv")
    width, height = style.COLUMN, 2.7  # inches of a panel

    def numbers(self, results: Results) -> pd.DataFrame:
        """What is plotted; unless said otherwise, means over runs in the main metric."""
        return self.means(results, self.cells)

    def means(self, results: Results, cells: Sequence[Cell]) -> pd.DataFrame:
        """Means over runs in the main metric."""
        summary = summarise(results, cells, self.metrics)
        return summary[summary["metric"] == self.metric.name]

    def panels(self, numbers: pd.DataFrame) -> Sequence[Panel]:
        """A function that draws each panel; unless said otherwise, there is one, by :meth:`draw`."""
        return [functools.partial(self.draw, numbers)]

    def draw(self, numbers: pd.DataFrame, axes: Axes) -> None:
        """Draw a figure of one panel."""
        raise NotImplementedError

    def panel_height(self, numbers: pd.DataFrame) -> float:
        return self.height

    def make(self, results: Results, **paths: Path) -> None:
        numbers = self.numbers(results)
        panels, height = self.panels(numbers), self.panel_height(numbers)
        style.save(style.draw(*panels, width=self.width, height=height), pdf=paths["pdf"], png=paths["png"])
        render.write_csv(paths["csv"], numbers)


class OfStudy(Report):
    """A report of each study of a layout, under the study's name; ``tells_pools`` if it can show runs that differ in
    their pool of training pairs."""

    tells_pools: ClassVar[bool] = False

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return study_cells(self.experiment, self.name)

    @functools.cached_property
    def _all(self) -> frozenset[Cell]:
        return frozenset(self.cells)

    def partners(self, cells: Sequence[Cell], backbone: str = "", **system: Any) -> list[Cell]:
        """The study's cell that differs from each of these in its backbone, or in the coordinates of ``system``, alone;
        none at all where one of them has none."""
        runs = [dataclasses.replace(cell.run, backbone=backbone or cell.backbone) for cell in cells]
        found = [dataclasses.replace(cell, run=run, **system) for cell, run in zip(cells, runs, strict=True)]
        return found if self._all.issuperset(found) else []

    def problems(self) -> Iterator[str]:
        """What its layout needs and its study's cells lack, each as the end of a sentence about the study."""
        yield from ()

    # Common problems.

    @property
    def _layout(self) -> str:
        return f"the layout {self.study.layout}"

    def of_one_backbone(self, how: str = "") -> Iterator[str]:
        """The problem of a report that tells no backbones apart."""
        if len({cell.backbone for cell in self.cells}) > 1:
            yield f"{self._layout}{how} is of one backbone; name one"

    def of_one_setting(self) -> Iterator[str]:
        """The problem of a report that tells neither reveal orders nor step budgets apart."""
        if len({(cell.order, cell.steps) for cell in self.cells}) > 1:
            yield f"{self._layout} is of one reveal order and one T; name one of each"

    def of_methods(self, *names: str) -> Iterator[str]:
        """The problem of a report that compares these length methods."""
        if lacking := {*names} - {cell.method for cell in self.cells}:
            yield f"{self._layout} needs the methods {', '.join(sorted(lacking))}; add them"
