"""Sets: the named lists of cells that a run translates and scores together, each with one load of its model.

The grid of the matrix is a set, and so is every study. A cell's home is the first set that lists it, in the order of
the config: there its translations and scores are, and every table reads them there. A cell by itself is a set too,
under its own name (``wmt22.ev-med-T32``): for whoever asks for that one alone. All sets of a run share a store, so what
one has computed costs another nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from entropy_valley.errors import InputError
from entropy_valley.experiment import matrix
from entropy_valley.experiment.matrix import Cell, Run, remembered
from entropy_valley.experiment.schema import Experiment
from entropy_valley.results import SCORES, TRANSLATIONS, header_path
from entropy_valley.spelling import question


@dataclass(frozen=True)
class CellSet:
    """Some cells of one run, in the config's order."""

    run: Run
    name: str
    cells: tuple[Cell, ...]

    def __hash__(self) -> int:
        return hash((self.run, self.name))  # not of hundreds of cells

    def folder(self, root: str) -> str:
        """Where its translations and scores are."""
        return f"{self.run.folder(root)}/{self.name}"

    def translations(self, root: str) -> str:
        """The file with a row for each sentence of each cell."""
        return f"{self.folder(root)}/{TRANSLATIONS}"

    def scores(self, root: str) -> str:
        """The file that says it is done: a row for each sentence of each cell, by every metric."""
        return f"{self.folder(root)}/{SCORES}"

    def files(self, root: str) -> list[str]:
        """Translations and scores, each with its header."""
        rows = (self.translations(root), self.scores(root))
        return [path for name in rows for path in (name, str(header_path(name)))]

    @property
    def autoregressive(self) -> bool:
        """Whether its cells are written from left to right."""
        return not self.cells[0].order

    @property
    def testsets(self) -> list[str]:
        """The test sets of its cells."""
        return list(dict.fromkeys(cell.testset for cell in self.cells))


def single_name(cell: Cell) -> str:
    """The name of the set that has one cell alone: ``wmt22.ev-med-T32``, ``wmt22.beam4``."""
    return f"{cell.testset}.{cell.system.replace('/', '-')}"


class Sets:
    """The sets of a config. ``home`` is the set of each cell, ``all`` are those that have cells, in order."""

    def __init__(self, experiment: Experiment) -> None:
        taken: dict[Cell, tuple[Run, str]] = {}
        for name, cells in matrix.by_set(experiment):
            for cell in cells:
                taken.setdefault(cell, (cell.run, name))
        members: dict[tuple[Run, str], list[Cell]] = {}
        for cell, place in taken.items():
            members.setdefault(place, []).append(cell)
        made = {place: CellSet(*place, tuple(cells)) for place, cells in members.items()}
        self.experiment, self.all = experiment, list(made.values())
        self.home = {cell: made[place] for cell, place in taken.items()}
        self._of_run: dict[Run, dict[str, CellSet]] = {}
        for one in self.all:
            self._of_run.setdefault(one.run, {})[one.name] = one

    def of_run(self, run: Run) -> list[CellSet]:
        """The sets of a run."""
        return list(self._of_run.get(run, {}).values())

    def named(self, run: Run, name: str) -> CellSet:
        """The set of a run by its name, which may be that of a single cell; raise InputError for any other name."""
        there = self._of_run.get(run, {})
        if name in there:
            return there[name]
        cells = {single_name(cell): cell for one in there.values() for cell in one.cells}
        if name not in cells:
            sets, example = ", ".join(there) or "none", next(iter(cells), "")
            remedy = f"{question(name, [*there, *cells])}It has {sets}; a single cell has a name like {example}."
            raise InputError(f"{run.folder(self.experiment.results)}/{name}", "is no set of cells of this run", remedy)
        return CellSet(run, name, (cells[name],))

    def folder(self, cell: Cell) -> str:
        """The folder of a cell's home."""
        return self.home[cell].folder(self.experiment.results)

    def diagnostics(self, run: Run) -> dict[str, list[str]]:
        """The test sets of a run whose all-mask canvases are read: around the reference's length (``valley``), and with
        and without the source (``sig``). Empty where nothing shows them."""
        found = {
            kind: list(dict.fromkeys(cell.testset for cell in cells if cell.run == run))
            for kind, cells in remembered(self.experiment, "diagnosed", lambda: _diagnosed(self.experiment)).items()
        }
        return {kind: testsets for kind, testsets in found.items() if testsets}


def sets_of(experiment: Experiment) -> Sets:
    """The sets of a config, made once."""
    return remembered(experiment, "sets", lambda: Sets(experiment))


def _diagnosed(experiment: Experiment) -> dict[str, list[Cell]]:
    """The cells whose runs and test sets are diagnosed, by the kind."""
    of_layout = {
        layout: [
            cell
            for name in experiment.tables.studies
            if experiment.studies[name].layout == layout
            for cell in matrix.study_cells(experiment, name)
        ]
        for layout in ("checks", "categories")
    }
    return {"valley": [*matrix.valley_cells(experiment), *of_layout["checks"]], "sig": of_layout["categories"]}
