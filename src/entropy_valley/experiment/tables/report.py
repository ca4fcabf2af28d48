"""What the workflow knows of a table or figure before it is made, and how it is made and written.

A table is a function of the names of a config and of the results of its cells; see :func:`table`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell, sets_of, study_cells
from entropy_valley.experiment.frames import SOURCES, read_sets, require_means
from entropy_valley.experiment.tables import footnotes, render, style
from entropy_valley.experiment.tables.names import Names
from entropy_valley.experiment.tables.reader import Data, Results, require_of_config
from entropy_valley.experiment.tables.show import Shown
from entropy_valley.experiment.tables.style import Figure
from entropy_valley.results import DIAGNOSTICS, SET_FILES, TRANSLATIONS, System, system_of
from entropy_valley.scoring.metrics import Metric

ENDINGS = {
    "table": ("tex", "float.tex", "md", "html", "csv"),
    "comparison": ("html", "md", "csv"),
    "figure": ("pdf", "svg", "png", "csv"),
}


ZEROS = {"pratt": "with Pratt's treatment of zeros", "wilcox": "without zeros"}


Make = Callable[[Names, Data], Any]


def main_and_bleu(names: Names) -> list[Metric]:
    return names.named_metrics(names.metric.name, "bleu")


def whatever(names: Names) -> bool:
    return True


@dataclass(frozen=True)
class Kind:
    """A table or figure, whatever the config: the function that makes it, and what must be known before.

    In the ``caption``, ``{metric}`` stands for the label of the main metric, ``{metrics}`` for those of the main table,
    and ``{zeros}`` for how Wilcoxon's test takes them.
    """

    make: Make
    caption: str | Callable[[Names], str]
    # Whose results it shows; without it, it is a layout of studies, and each study of that layout has it.
    cells: Callable[[Experiment], Sequence[Cell]] | None = None
    # What it reads of sentences beside their scores, see `frames.SOURCES`; and other files.
    columns: Sequence[str] | Callable[[Names], Sequence[str]] = ()
    files: Callable[[Names], Iterable[str]] = lambda names: ()
    metrics: Callable[[Names], list[Metric]] = main_and_bleu  # those that it prints
    problems: Callable[[Names], Iterable[str]] = lambda names: ()  # of a study, each the end of a sentence about it
    tells_pools: bool = False  # it can show runs that differ in their pool of training pairs
    scored: bool = True  # it reads the results of its cells
    signed: bool = True  # below it stands what they were made by
    sentences: Callable[[Names], str] | None = None  # how many its numbers are of, where not all of its test sets
    wanted: Callable[[Names], bool] = lambda names: bool(names.cells)  # the config asks for it
    ready: Callable[[Names], bool] = whatever  # not while it waits for people's work
    comparable: Callable[[Names], bool] | None = None  # the paper's numbers may stand beside its own: if it is ready
    rule: str = "table"

    @property
    def of_study(self) -> bool:
        """Whether each study of its layout has one."""
        return self.cells is None

    def __call__(self, experiment: Experiment, key: str = "", name: str = "") -> Report:
        return Report(self, experiment, key, name)


def table(
    caption: str | Callable[[Names], str], cells: Callable[[Experiment], Sequence[Cell]] | None = None, **more: Any
) -> Callable[[Make], Kind]:
    """Makes a function ``(names, data) -> Shown`` a table; ``more`` are fields of :class:`Kind`."""
    return lambda make: Kind(make, caption, cells, **more)


def figure(
    caption: str | Callable[[Names], str], cells: Callable[[Experiment], Sequence[Cell]] | None = None, **more: Any
) -> Callable[[Make], Kind]:
    """Makes a function ``(names, data) -> Figure`` a figure."""
    return table(caption, cells, **{"rule": "figure", "signed": False, **more})


class Report:
    """A table or figure of a config: its ``key`` in the registry, and the ``name`` of its file or study."""

    def __init__(self, kind: Kind, experiment: Experiment, key: str, name: str) -> None:
        self.kind, self.experiment, self.key, self.name = kind, experiment, key, name
        self.rule, self.endings = kind.rule, ENDINGS[kind.rule]
        # The cells whose results it shows; none where the config does not ask for it.
        self.cells = kind.cells(experiment) if kind.cells else study_cells(experiment, name)
        self.names = Names(experiment, self.cells, name)
        self.names.shown_metrics = kind.metrics(self.names)
        self.wanted = kind.wanted(self.names)

    @property
    def ready(self) -> bool:
        return self.kind.ready(self.names)

    @property
    def comparable(self) -> bool:
        return (self.kind.comparable or self.kind.ready)(self.names)

    def problems(self) -> Iterator[str]:
        yield from self.kind.problems(self.names)

    @property
    def text(self) -> str:
        """The caption with the labels of metrics."""
        names, caption = self.names, self.kind.caption
        words = {
            "metric": names.metric.label,
            "metrics": " and ".join(metric.label for metric in names.main_metrics),
            "zeros": ZEROS[names.statistics.wilcoxon_zeros],
        }
        text = caption if isinstance(caption, str) else caption(names)
        # Not by str.format: a caption may have braces of its own.
        return re.sub(r"\{(\w+)\}", lambda word: words[word[1]], text)

    @functools.cached_property
    def columns(self) -> Sequence[str]:
        return self.kind.columns(self.names) if callable(self.kind.columns) else self.kind.columns

    def inputs(self) -> list[str]:
        """Every file that it reads: of the sets of its cells, of what its columns need, of test sentences in training;
        then others."""
        root, cells = self.experiment.results, self.cells
        sources = {SOURCES[name] for name in self.columns}
        read: list[str] = []
        if self.kind.scored:
            for folder in systems_of(self.experiment, cells, root):
                for name in SET_FILES:
                    if name != TRANSLATIONS or "translations" in sources:
                        read.append(f"{folder}/{name}")
        for cell in cells:
            if "test set" in sources:
                read.append(f"{root}/corpus/{cell.direction}/test/{cell.testset}.jsonl")
            if "token counts" in sources:
                read.append(f"{root}/{cell.direction}/{cell.backbone}/tokens/{cell.testset}.jsonl")
        if "diagnostics" in sources:
            read += diagnostics(root, cells)
        if self.kind.scored and self.kind.signed:
            for cell in footnotes.overlapping(self.names):
                read.append(footnotes.overlap_file(root, cell))
        return list(dict.fromkeys([*read, *self.kind.files(self.names)]))

    def data(self, results: Results) -> Data:
        """The results of its cells, in their order."""
        if not (self.kind.scored and self.cells):
            return Data(pd.DataFrame(), pd.DataFrame(), results)
        data = data_of(results, self.cells, self.columns)
        if self.experiment.scoring.comet:  # chrF of a corpus is not the mean of its sentences'
            require_means(data, self.names.metric.name)
        return data

    def shown(self, results: Results) -> Shown | Figure:
        """What it shows, with the footnotes about what its numbers were made by."""
        data = self.data(results)
        if not (self.kind.scored and self.kind.signed):
            return self.kind.make(self.names, data)
        # First: only comparable numbers may be subtracted.
        lines, signed = footnotes.provenance(self.names, data, self.kind.sentences)
        shown = self.kind.make(self.names, data)
        return dataclasses.replace(shown, notes=[*shown.notes, *lines], signatures=[*shown.signatures, *signed])

    def make(self, results: Results, **paths: Path) -> None:
        """Make it and write its files, one path for each ending."""
        shown = self.shown(results)
        if isinstance(shown, Figure):
            render.write_csv(paths["csv"], shown.numbers)
            own = self.experiment.tables.matplotlibrc
            style.save(shown.draw(own), paths, own)
        else:
            caption = self.text if self.rule == "table" else ""
            render.write_table(paths, shown, render.title(self.name), caption, f"tab:{self.name}")


def systems_of(experiment: Experiment, cells: Iterable[Cell], root: str) -> dict[str, list[System]]:
    """The systems of cells by the folders of their sets."""
    systems: dict[str, list[System]] = {}
    for cell in cells:
        systems.setdefault(sets_of(experiment).home[cell].folder(root), []).append(system_of(cell))
    return systems


def data_of(results: Results, cells: Sequence[Cell], columns: Sequence[str]) -> Data:
    """The results of cells, in their order; ``columns`` are those of sentences beside their scores. Raises InputError
    where they are not those of the config."""
    folders = systems_of(results.experiment, cells, results.root)
    frames = read_sets(results.root, folders, columns, results.file)
    require_of_config(results, cells)
    return Data(*frames, results).of(cells)


def diagnostics(root: str, cells: Iterable[Cell]) -> list[str]:
    """The diagnostics of the runs of cells."""
    return [f"{run.folder(root)}/{DIAGNOSTICS}" for run in dict.fromkeys(cell.run for cell in cells)]


# --- Problems of studies that several layouts have, each as the end of a sentence about the study.


def one_backbone(names: Names, how: str = "") -> Iterator[str]:
    """The problem of a report that tells no backbones apart."""
    if len({cell.backbone for cell in names.cells}) > 1:
        yield f"the layout {names.study.layout}{how} is of one backbone; name one"


def one_setting(names: Names) -> Iterator[str]:
    """The problem of a report that tells neither reveal orders nor step budgets apart."""
    if len({(cell.order, cell.steps) for cell in names.cells}) > 1:
        yield f"the layout {names.study.layout} is of one reveal order and one T; name one of each"


def needs_methods(names: Names, *methods: str) -> Iterator[str]:
    """The problem of a report that compares these length methods."""
    if lacking := {*methods} - {cell.method for cell in names.cells}:
        yield f"the layout {names.study.layout} needs the methods {', '.join(sorted(lacking))}; add them"
