"""What tables read beside the frames, and whether results are those of the config."""

from __future__ import annotations

import functools
import io
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment, params, paths
from entropy_valley.experiment.config.matrix import Cell, CellSet, sets_of
from entropy_valley.experiment.config.methods import declares, origins
from entropy_valley.experiment.frames import CELL
from entropy_valley.model.adapters import FACTS
from entropy_valley.results import (
    ABSENT,
    DIAGNOSTICS,
    REMEDY,
    SET_FILES,
    TRANSLATIONS,
    Difference,
    differences,
    header_path,
    moved,
    read_record,
    record_path,
    require_sound,
    system_of,
)

HEADER = header_path(TRANSLATIONS).name
Settings = Mapping[str, Any]
T = TypeVar("T")

# --- Where each file is, below a folder of results.


def set_files(experiment: Experiment, root: str, cells: Iterable[Cell]) -> list[str]:
    """The translations and scores of the sets where cells are at home, with their headers; each file once."""
    folders = dict.fromkeys(sets_of(experiment).home[cell].folder(root) for cell in cells)
    return [f"{folder}/{name}" for folder in folders for name in SET_FILES]


def diagnostics_file(root: str, cell: Cell) -> str:
    """The diagnostics of a cell's run."""
    return f"{cell.run.folder(root)}/{DIAGNOSTICS}"


# --- Their contents.


class Results:
    """What the jobs of a config have left in the folder of results ``root``, for those who make tables of it.

    ``declared`` are the files that the reading job has named as its inputs. Any other one is an :class:`InputError`:
    Snakemake would not make the table again after it has changed. None: there is no job, and all may be read.
    So is a missing file, one that says nothing of a cell, a row that lacks what is asked for, and a result that was
    edited, copied, or made from others than those that are there, see :func:`.results.require_sound`.
    """

    def __init__(self, experiment: Experiment, root: str | Path, declared: Iterable[str | Path] | None = None) -> None:
        self.experiment, self.root = experiment, str(root)
        # In order, and quick to look up.
        self.declared = None if declared is None else dict.fromkeys(sorted(map(str, declared)))
        self._read: dict[Hashable, Any] = {}
        self._sound: set[Path] = set()

    def file(self, path: str) -> str:
        """A path that may be read."""
        if self.declared is not None and path not in self.declared:
            remedy = "Add it to the `inputs` of the table or figure."
            raise InputError(path, "is read, but it is not one of the files that the job declares", remedy)
        require_sound(Path(path), self.root, self._sound)
        return path

    def at(self, *parts: str) -> str:
        """The path of a file that may be read, by its parts below the folder of results."""
        return self.file("/".join((self.root, *parts)))

    def json(self, *parts: str) -> Any:
        """The value of a JSON file, by the parts of its path below the folder of results."""
        return files.read_json(self.at(*parts))

    def csv(self, path: str, **options: Any) -> pd.DataFrame:
        """The rows of a CSV file; ``options`` are those of pandas."""
        return pd.read_csv(io.StringIO("\n".join(files.read_lines(self.file(path)))), **options)

    def once(self, key: Hashable, read: Callable[[], T]) -> T:
        """What ``read`` returns, read at the first call with this key."""
        if key not in self._read:
            self._read[key] = read()
        return self._read[key]

    def params(self, path: str) -> Settings:
        """The params that a file was made by."""
        record = self.once(path, lambda: read_record(record_path(path)))
        if record is None:
            raise files.not_there(record_path(path))
        return record.params

    # Of a cell.

    def diagnostics(self, cell: Cell, kind: str) -> Any:
        """What its run's diagnostics say of its test set: the curves of ``valley``, or the rows of ``sig``."""
        path = self.file(diagnostics_file(self.root, cell))
        content = files.read_json(path)
        if cell.testset not in content.get(kind, {}):
            raise InputError(path, f"has no {kind} of {cell.testset}", REMEDY)
        return content[kind][cell.testset]

    def latency(self, cell: Cell) -> dict[str, Any]:
        """Its measured seconds."""
        return files.read_json(self.file(cell.latency(self.root)))

    def of_set(self, cell: Cell, name: str) -> str:
        """The path of a file of its set."""
        return self.file(f"{self.folder(cell)}/{name}")

    def place(self, cell: Cell, name: str | Path) -> str:
        """The place that an error names: a file of its set, and what of it is this cell's."""
        return f"{self.folder(cell)}/{name}: {system_of(cell).label}"

    def folder(self, cell: Cell) -> str:
        """The folder of its set."""
        return self.once((cell, "folder"), lambda: sets_of(self.experiment).home[cell].folder(self.root))


class Data(NamedTuple):
    """The results of a table's cells, in their order: a row for each sentence, and a row for each cell, see
    :mod:`.frames`. ``files`` reads what else its job declares."""

    sentences: pd.DataFrame
    cells: pd.DataFrame
    files: Results

    def of(self, cells: Iterable[Cell]) -> Data:
        """The results of some of its cells, in their order."""
        keys = pd.DataFrame([{"pool": "", **cell.key()} for cell in cells])[CELL]
        return Data(keys.merge(self.sentences, "left", on=CELL), keys.merge(self.cells, "left", on=CELL), self.files)


# --- Whether results are those of the config.

# What length methods declare that use a fit, by its name in the params.
FITTED = {"length_statistics": ["uses_statistics"], "learned": ["learns"], "length_head": ["uses_length_head"]}
ANY_FIT = [need for needs in FITTED.values() for need in needs]
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
    for path, spec in specs_behind(experiment, one, testset).items():
        place = record_path(moved(path, experiment.results, root))
        if record := read_record(place):
            for change in differences(record.params, json.loads(spec)):
                if change.key not in ("cells", REMADE):
                    (derived if change.key.startswith(MADE_FROM) else own).append((record.rule, place, change))
    return own or derived


def specs_behind(experiment: Experiment, one: CellSet, testset: str) -> dict[str, str]:
    """The params of what is behind a set, but for its checkpoint, by path."""
    run, used, root = one.run, paths.adapter_run(experiment, one.run), experiment.results
    adapter, specs = paths.adapter_folder(experiment, run), {}
    if adapter and experiment.adapters == "trained":
        specs[f"{root}/corpus/{used.direction}/train.jsonl"] = params.corpus(experiment, used.direction)
    specs[f"{root}/corpus/{run.direction}/test/{testset}.jsonl"] = params.testset(experiment, run.direction, testset)
    if adapter:
        specs[f"{adapter}/{FACTS}"] = params.any_adapter(experiment, used)
    specs[one.translations(root)] = params.translation(experiment, one)
    specs[one.scores(root)] = params.scores(experiment, one)
    return specs


def concerns(experiment: Experiment, key: str, cell: Cell) -> bool:
    """Whether a change of a set's params changes one of its cells. Those of another length method, reveal order or
    test set do not."""
    kind, _, name = key.partition(".")
    methods = (cell.method, *origins(experiment, cell.method)) if cell.order else ()
    if kind == "cells":
        return False
    if kind == "methods":
        return name.partition(".")[0] in methods
    if kind == "orders":
        return name.partition(".")[0] == cell.order
    if name.startswith("testset "):
        return name == f"testset {cell.testset}"
    if kind == "fits" or name.startswith("corpus "):  # training pairs, to which some length methods are fitted
        fitted = FITTED.get(name.partition(".")[0], ANY_FIT)
        return any(declares(experiment, method, need) for need in fitted for method in methods)
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


def require_of_config(results: Results, cells: Iterable[Cell]) -> None:
    """Raise :class:`InputError` for cells of other settings than those of the config: after `snakemake --touch`, or
    where older results were put back."""
    experiment = results.experiment
    checked = functools.cache(functools.partial(changes, experiment, results.root))
    for cell in cells:
        for _, place, change in checked(sets_of(experiment).home[cell], cell.testset):
            if concerns(experiment, change.key, cell):
                raise InputError(place, f"is older than the config: {told(change)}", OLD)


def versions(results: Results, cells: Iterable[Cell]) -> Counter[str]:
    """How many sets each version of the code has translated."""
    folders = dict.fromkeys(map(results.folder, cells))
    records = (read_record(Path(folder, HEADER)) for folder in folders)
    return Counter(record.facts["code"] for record in records if record)
