"""A table or figure from beginning to end: what the workflow knows of it before it is made, what it reads, whether that
is of this config, and how it is made and written.

A table is a function of the results of its cells and of the names of their config, see :class:`Data`.
"""

from __future__ import annotations

import dataclasses
import functools
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment, params
from entropy_valley.experiment.config.matrix import Cell, CellSet, sets_of, study_cells
from entropy_valley.experiment.config.methods import declares, origins
from entropy_valley.experiment.frames import CELL, FURTHER, SOURCES, diagnosed, further_file, read_sets
from entropy_valley.experiment.tables import footnotes, render, style
from entropy_valley.experiment.tables.formats import Names
from entropy_valley.experiment.tables.render import Bold, Column, Row, Shown, aligned
from entropy_valley.experiment.tables.style import Figure
from entropy_valley.results import (
    ABSENT,
    SET_FILES,
    TRANSLATIONS,
    Difference,
    System,
    changed_params,
    moved,
    require_sound,
    system_of,
)
from entropy_valley.scoring.metrics import Metric

# All that the file of a table needs.
__all__ = ["Bold", "Column", "Data", "Figure", "Names", "Row", "Shown", "aligned", "figure", "table"]

# --- The results of a config's jobs.


class Results:
    """What jobs have left in the folder of results ``root``, for those who make tables of it.

    A table reads what its job declares, :meth:`Report.inputs`, and nothing else: Snakemake would not make it again
    after another file has changed.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)
        self._sound: set[Path] = set()

    def file(self, path: str) -> str:
        """A path that may be read. InputError for a result that was edited, copied, or made from others than those that
        are there, see :func:`.results.require_sound`."""
        require_sound(Path(path), self.root, self._sound)
        return path

    def json(self, path: str) -> Any:
        return files.read_json(self.file(path))

    def csv(self, path: str, **options: Any) -> pd.DataFrame:
        """The rows of a CSV file; ``options`` are those of pandas."""
        return pd.read_csv(io.StringIO("\n".join(files.read_lines(self.file(path)))), **options)

    def diagnostics(self, cell: Cell, kind: str) -> Any:
        """What the diagnostics of a cell's run say of its test set, see :func:`.frames.diagnosed`."""
        return diagnosed(self.file(further_file(self.root, "diagnostics", cell)), kind, cell.testset)

    def latency(self, cell: Cell) -> dict[str, Any]:
        return self.json(cell.latency(self.root))


class Data(Names):
    """What a table is made of: the names of its config, and the results of its cells, in their order: a row for each
    sentence, and a row for each cell, see :mod:`.frames`. ``files`` reads what else its job declares."""

    def __init__(self, names: Names, files: Results, sentences: pd.DataFrame, cells: pd.DataFrame) -> None:
        vars(self).update(vars(names))
        self.files, self.sentences, self.cells = files, sentences, cells

    def of(self, cells: Iterable[Cell], names: Names | None = None) -> Data:
        """The results of some of its cells, in their order; with these ``names`` in place of its own."""
        keys = pd.DataFrame([[getattr(cell, name) for name in CELL] for cell in cells], columns=CELL)
        sentences, rows = (keys.merge(frame, "left", on=CELL) for frame in (self.sentences, self.cells))
        return Data(names or self, self.files, sentences, rows)


def data_of(results: Results, names: Names, columns: Sequence[str]) -> Data:
    """The results of the cells that ``names`` are of, in their order; ``columns`` are those of sentences beside their
    scores. Raises InputError for cells of other settings than those of the config: after `snakemake --touch`, or where
    older results were put back."""
    experiment, cells, root = names.experiment, names.listed, results.root
    frames = read_sets(root, systems_of(experiment, cells, root), columns)
    checked = functools.cache(functools.partial(changes, experiment, root))
    for cell in cells:
        for _, place, change in checked(sets_of(experiment).home[cell], cell.testset):
            if concerns(experiment, change.key, cell):
                raise InputError(place, f"is older than the config: {told(change)}", OLD)
    return Data(names, results, *frames).of(cells)


def systems_of(experiment: Experiment, cells: Iterable[Cell], root: str) -> dict[str, list[System]]:
    """The systems of cells by the folders of their sets."""
    systems: dict[str, list[System]] = {}
    for cell in cells:
        systems.setdefault(sets_of(experiment).home[cell].folder(root), []).append(system_of(cell))
    return systems


def set_files(experiment: Experiment, cells: Iterable[Cell]) -> list[str]:
    """The translations and scores of the sets where cells are at home, with their headers; each file once."""
    folders = systems_of(experiment, cells, experiment.results)
    return [f"{folder}/{name}" for folder in folders for name in SET_FILES]


def diagnostics_files(names: Names) -> list[str]:
    return [further_file(names.experiment.results, "diagnostics", cell) for cell in names.listed]


# --- Whether results are those of the config.

# What length methods declare that use a fit, by its name in the params.
FITTED = {"length_statistics": "uses_statistics", "learned": "learns", "length_head": "uses_length_head"}
OLD = "Run the workflow again: it makes only these again."
MADE_FROM = "made_from."  # how the keys of params begin that say what a result is made from
REMADE = f"{MADE_FROM}translations"  # of scores: also where a set has got more cells


def changes(experiment: Experiment, root: str, one: CellSet, testset: str) -> list[tuple[str, Path, Difference]]:
    """What the headers behind the cells of a set and test set have otherwise than the config: rule, header, change.

    Which cells a set has is told by the cells themselves. What is made from something else comes only where no header
    tells in what that differs.
    """
    own: list[tuple[str, Path, Difference]] = []
    derived: list[tuple[str, Path, Difference]] = []
    behind = params.specs_behind(experiment, one, testset)
    specs = {moved(path, experiment.results, root): spec for path, spec in behind.items()}
    for place, record, change in changed_params(specs):
        if change.key not in ("cells", REMADE):
            (derived if change.key.startswith(MADE_FROM) else own).append((record.rule, place, change))
    return own or derived


def concerns(experiment: Experiment, key: str, cell: Cell) -> bool:
    """Whether a change of a set's params changes one of its cells. Those of another length method, reveal order or
    test set do not."""
    kind, _, rest = key.partition(".")
    methods = (cell.method, *origins(experiment, cell.method)) if cell.order else ()
    if kind == "cells":
        return False
    if kind in ("methods", "orders"):
        own = methods if kind == "methods" else (cell.order,)
        return f"{rest}.".startswith(tuple(f"{one}." for one in own))  # names may have dots, such as ratio_0.95
    if rest.startswith("testset "):
        return rest == f"testset {cell.testset}"
    if kind == "fits" or rest.startswith("corpus "):  # training pairs, to which some length methods are fitted
        name = rest.partition(".")[0]
        needs = [FITTED[name]] if name in FITTED else FITTED.values()
        return any(declares(experiment, method, need) for need in needs for method in methods)
    return True


def told(change: Difference) -> str:
    """A change in words: of lists of cells how many, of what only one side has its name."""
    before, after = change.before, change.after
    if change.key.startswith(MADE_FROM):
        return f"made from another {change.key.removeprefix(MADE_FROM)}"
    if change.key == "cells" and ABSENT not in (before, after):
        old, new = ({files.canonical(cell) for cell in cells} for cells in (before, after))
        return f"cells: {len(new - old)} more, {len(old - new)} fewer"
    if ABSENT in (before, after):
        return f"{change.key} {'added' if before is ABSENT else 'removed'}"
    return str(change)


# --- A table or figure, whatever the config.

ENDINGS = {
    "table": ("tex", "float.tex", "md", "html", "csv"),
    "comparison": ("html", "md", "csv"),
    "figure": ("pdf", "svg", "png", "csv"),
}
AGAINST = "against"
ZEROS = {"pratt": "with Pratt's treatment of zeros", "wilcox": "without zeros"}
Make = Callable[[Data], Any]
Caption = str | Callable[[Names], str]
Cells = Callable[[Experiment], Sequence[Cell]]


@dataclass(frozen=True)
class Kind:
    """A table or figure, whatever the config: the function that makes it, and what must be known before.

    In the ``caption``, ``{metric}`` stands for the label of the main metric, ``{metrics}`` for those of the main table,
    and ``{zeros}`` for how Wilcoxon's test takes them.
    """

    make: Make
    caption: Caption
    # Whose results it shows; without it, it is a layout of studies, and each study of that layout has it.
    cells: Cells | None = None
    columns: Sequence[str] = ()  # what it reads of sentences beside their scores, see `frames.SOURCES`
    files: Callable[[Names], Iterable[str]] = lambda names: ()  # what else it reads
    metrics: Callable[[Names], list[Metric]] = lambda names: names.named_metrics(names.metric.name, "bleu")  # printed
    # Of a study: in what its cells may differ, beside direction, test set, seed and length method; which length methods
    # it needs, AGAINST for that of the study; and further problems, each the end of a sentence about it.
    tells: Sequence[str] = ("backbone", "order", "steps")
    needs: Sequence[str] = ()
    problems: Callable[[Names], Iterable[str]] = lambda names: ()
    scored: bool = True  # it reads the results of its cells
    signed: bool = True  # below it stands what they were made by
    sentences: Callable[[Names], str] | None = None  # how many its numbers are of, where not all of its test sets
    wanted: Callable[[Names], bool] = lambda names: bool(names.listed)  # the config asks for it
    ready: Callable[[Names], bool] = lambda names: True  # not while it waits for people's work
    comparable: Callable[[Names], bool] | None = None  # the paper's numbers may stand beside its own: if it is ready
    rule: str = "table"

    @property
    def of_study(self) -> bool:
        return self.cells is None


def table(caption: Caption, cells: Cells | None = None, **more: Any) -> Callable[[Make], Kind]:
    """Makes a function ``data -> Shown`` a table; ``more`` are fields of :class:`Kind`."""
    return lambda make: Kind(make, caption, cells, **more)


def figure(caption: Caption, cells: Cells | None = None, **more: Any) -> Callable[[Make], Kind]:
    """Makes a function ``data -> Figure`` a figure."""
    return table(caption, cells, rule="figure", signed=False, **more)


# --- A table or figure of a config.


class Report:
    """A table or figure of a config: its ``key`` in the registry, and the ``name`` of its file or study."""

    def __init__(self, kind: Kind, experiment: Experiment, key: str, name: str) -> None:
        self.kind, self.experiment, self.key, self.name = kind, experiment, key, name
        self.rule, self.endings = kind.rule, ENDINGS[kind.rule]
        # The cells whose results it shows; none where the config does not ask for it.
        self.cells = kind.cells(experiment) if kind.cells else study_cells(experiment, name)
        self.names = Names(experiment, self.cells, name)
        self.names.shown_metrics = kind.metrics(self.names)
        self.wanted, self.ready = kind.wanted(self.names), kind.ready(self.names)

    @property
    def text(self) -> str:
        """The caption with the labels of metrics."""
        names, caption = self.names, self.kind.caption
        text = caption if isinstance(caption, str) else caption(names)
        # Not by str.format: a caption may have braces of its own.
        text = text.replace("{metric}", names.metric.label).replace("{zeros}", ZEROS[names.statistics.wilcoxon_zeros])
        return text.replace("{metrics}", " and ".join(metric.label for metric in names.main_metrics()))

    def inputs(self) -> list[str]:
        """Every file that it reads: of the sets of its cells, of what its columns need, of test sentences in training;
        then others."""
        root, kind, cells = self.experiment.results, self.kind, self.cells
        sources = {SOURCES[name] for name in kind.columns}
        read: list[str] = []
        if kind.scored:
            for path in set_files(self.experiment, cells):
                if "translations" in sources or not path.endswith(TRANSLATIONS):
                    read.append(path)
        for source in FURTHER:
            if source in sources:
                read += [further_file(root, source, cell) for cell in cells]
        if kind.scored and kind.signed:
            read += footnotes.overlap_files(self.names, root)
        return list(dict.fromkeys([*read, *kind.files(self.names)]))

    def shown(self, results: Results) -> Shown | Figure:
        """What it shows, with the footnotes about what its numbers were made by."""
        names, kind = self.names, self.kind
        if not (kind.scored and self.cells):
            return kind.make(Data(names, results, pd.DataFrame(), pd.DataFrame()))
        data = data_of(results, names, kind.columns)
        if not kind.signed:
            return kind.make(data)
        # First: only comparable numbers may be subtracted.
        footnotes.require_same_signatures(data)
        count = kind.sentences(names) if kind.sentences else footnotes.sentences(data)
        shown = kind.make(data)
        notes = [*shown.notes, count, *footnotes.provenance(data)]
        signatures = [*shown.signatures, *footnotes.signatures(data)]
        return dataclasses.replace(shown, notes=notes, signatures=signatures)

    def write(self, outputs: Sequence[str]) -> None:
        """Make it and write its files, one for each of its endings, of the results in the same folder."""
        paths = dict(zip(self.endings, map(Path, outputs), strict=True))
        shown = self.shown(Results(paths["csv"].parents[1]))
        if isinstance(shown, Figure):
            render.write_csv(paths["csv"], shown.numbers)
            own = self.experiment.tables.matplotlibrc
            style.save(shown.draw(own), paths, own)
        else:
            caption = self.text if self.rule == "table" else ""
            render.write_table(paths, shown, render.title(self.name), caption, f"tab:{self.name}")
