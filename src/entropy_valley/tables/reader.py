"""What tables read beside the frames, the records behind that, and whether the cells of a table belong together."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from entropy_valley import files
from entropy_valley.config import Experiment, params, paths
from entropy_valley.config.matrix import DEV, Cell, CellSet, Run, sets_of
from entropy_valley.errors import InputError
from entropy_valley.model.adapters import FACTS, FILES, LOSSES
from entropy_valley.model.checkpoint import MANIFEST, WRITTEN
from entropy_valley.results import (
    DIAGNOSTICS,
    ENDING,
    REMEDY,
    SCORES,
    SET_FILES,
    TRANSLATIONS,
    ancestry,
    differences,
    header_path,
    read_record,
    record_path,
    system_of,
)

HEADER = header_path(TRANSLATIONS).name
Settings = Mapping[str, Any]
T = TypeVar("T")

# --- Where each file is, below a folder of results.

# The record of a file that is not the first output of its job, or that has a header.
RECORDS = {
    "corpus.json": "train.made.json",
    **dict.fromkeys((LOSSES, *FILES), record_path(FACTS).name),
    **dict.fromkeys(WRITTEN, record_path(MANIFEST).name),
    **{name: header_path(name).name for name in (TRANSLATIONS, SCORES)},
    **{header_path(name).name: header_path(name).name for name in (TRANSLATIONS, SCORES)},
}


def set_files(experiment: Experiment, root: str, cells: Iterable[Cell]) -> list[str]:
    """The translations and scores of the sets where cells are at home, with their headers; each file once."""
    folders = dict.fromkeys(sets_of(experiment).home[cell].folder(root) for cell in cells)
    return [f"{folder}/{name}" for folder in folders for name in SET_FILES]


def with_records(experiment: Experiment, read: Sequence[str], cells: Iterable[Cell]) -> list[str]:
    """What a job reads, and the records by which :func:`.results.ancestry` tells what this was made from: its own, and
    those of all that is behind the sets where ``cells`` are at home.

    Nothing is made again for a record: those that were moved away after what is made of them are left out.
    """
    named = (path.rpartition("/") for path in read if _is_no_record(path))
    own = [f"{folder}/{RECORDS.get(name) or record_path(name)}" for folder, _, name in named]
    homes = dict.fromkeys(sets_of(experiment).home[cell] for cell in cells)
    if any(path.endswith(f"/{DIAGNOSTICS}") for path in read):
        for run in dict.fromkeys(one.run for one in homes):
            shown = {name for names in sets_of(experiment).diagnostics(run).values() for name in names}
            own += (str(record_path(path)) for _, path in _testsets(experiment, "", run.direction, sorted(shown)))
    behind = (record for one in homes for record in _behind(experiment, one))
    return list(dict.fromkeys(itertools.chain(read, own, behind)))


@functools.cache
def _behind(experiment: Experiment, one: CellSet) -> Sequence[str]:
    """The records of all that a set's translations and scores are made from, in turn. Of what is behind a finished
    result only those that are there."""
    finished: set[str] = set()
    listed = []
    for made, read in _steps(experiment, one):
        if made in finished or Path(made).is_file():
            finished.add(read)
        record = str(record_path(read))
        if read not in finished or Path(record).is_file():
            listed.append(record)
    return listed


def _steps(experiment: Experiment, one: CellSet) -> Iterator[tuple[str, str]]:
    """Each result behind a set, and what was made from it; of several outputs of a job the first."""
    run, root, used = one.run, experiment.results, paths.adapter_run(experiment, one.run)
    translations, adapter = one.translations(root), paths.adapter_folder(experiment, run)
    yield from _testsets(experiment, translations, run.direction, one.testsets)
    yield from _checkpoint(experiment, translations, run)
    if "fits" in params.translating(experiment, one):
        yield from _corpora(experiment, translations, run.direction)
    if adapter:
        yield translations, f"{adapter}/{FACTS}"
        yield from _checkpoint(experiment, f"{adapter}/{FACTS}", used)
        if experiment.adapters == "trained":
            yield from _corpora(experiment, f"{adapter}/{FACTS}", used.direction)
    for name in paths.downloaded_comets(experiment):
        yield one.scores(root), f"{root}/checkpoints/{name}.json"
    if experiment.scoring.comet.training:
        yield one.scores(root), f"{root}/comet/comet.json"
        yield from _corpora(experiment, f"{root}/comet/comet.json", *experiment.matrix.directions)


def _checkpoint(experiment: Experiment, made: str, run: Run) -> Iterator[tuple[str, str]]:
    file = paths.backbone_file(experiment, run.backbone, run.seed)
    yield made, file
    if experiment.backbones[run.backbone].is_pretrained_here:
        origin = paths.checkpoint_of(experiment, run.backbone)
        yield from _corpora(experiment, file, *params.pretraining_directions(experiment, origin))


def _testsets(experiment: Experiment, made: str, direction: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        testset = f"{experiment.results}/corpus/{direction}/test/{name}.jsonl"
        yield made, testset
        yield from _corpora(experiment, testset, direction) if name == DEV else _dataset(experiment, testset, name)


def _corpora(experiment: Experiment, made: str, *directions: str) -> Iterator[tuple[str, str]]:
    for direction in directions:
        pairs = f"{experiment.results}/corpus/{direction}/train.jsonl"
        yield made, pairs
        yield from _dataset(experiment, pairs, experiment.directions[direction].train)


def _dataset(experiment: Experiment, made: str, source: str) -> Iterator[tuple[str, str]]:
    if name := paths.dataset_of(experiment, source):
        yield made, f"{experiment.results}/datasets/{name}.json"


def _is_no_record(path: str) -> bool:
    return not path.endswith(ENDING)


def diagnostics_file(root: str, cell: Cell) -> str:
    """The diagnostics of a cell's run."""
    return f"{cell.run.folder(root)}/{DIAGNOSTICS}"


# --- Their contents.


class Results:
    """What the jobs of a config have left in the folder of results ``root``, for those who make tables of it.

    ``declared`` are the files that the reading job has named as its inputs, with records, which are read beside them.
    Any other one is an :class:`InputError`:
    Snakemake would not make the table again after it has changed. None: there is no job, and all may be read.
    So is a missing file, one that says nothing of a cell, and a row that lacks what is asked for; and declared files
    that do not belong together, see :func:`.results.faults`. ``ancestry`` is what these were made by.
    """

    def __init__(self, experiment: Experiment, root: str | Path, declared: Iterable[str | Path] | None = None) -> None:
        self.experiment, self.root = experiment, str(root)
        # In order, and quick to look up.
        self.declared = None if declared is None else dict.fromkeys(filter(_is_no_record, sorted(map(str, declared))))
        self.ancestry = ancestry(self.declared or (), self.root)
        self._read: dict[Hashable, Any] = {}

    def file(self, path: str) -> str:
        """A path that may be read."""
        if self.declared is not None and path not in self.declared:
            remedy = "Add it to the `inputs` of the table or figure."
            raise InputError(path, "is read, but it is not one of the files that the job declares", remedy)
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


# --- Cells of one table are made by the same settings, as the headers of their sets say.

EVERYWHERE = ("revision", "precision", "head_precision", "batch_invariant", "compile_layers", "merge_adapter")
# Of a set's params: what is compared cell by cell, or differs from run to run.
APART = ("cells", "methods", "orders", "fits", "made_from")
UNLIKE = "They do not belong in one table: remove the outdated files of its set and run again."


class Shared(NamedTuple):
    """Settings of a file; all that have the same ``scope`` have the same."""

    scope: tuple[object, ...]
    path: str
    settings: Settings


def require_alike(results: Results, cells: Iterable[Cell]) -> None:
    """Raise :class:`InputError` for cells that differ in settings which a table's cells must share; it names two files,
    the key and both values."""
    first: dict[tuple[object, ...], Shared] = {}
    for cell in cells:
        for one in _shared(results, cell):
            other = first.setdefault(one.scope, one)
            for key, theirs, ours in differences(other.settings, one.settings) if other != one else ():
                raise InputError(one.path, f"its {key} is {ours}, but that of {other.path} is {theirs}", UNLIKE)


def _shared(results: Results, cell: Cell) -> Iterator[Shared]:
    """What a cell shares, and with which others. A backbone may have readings and products of its own."""
    path, run = results.of_set(cell, HEADER), (cell.backbone, cell.direction)
    made, kind = results.params(path), "autoregressive" if cell.autoregressive else "denoised"
    yield Shared((kind,), path, {key: made[key] for key in EVERYWHERE if key in made})
    yield Shared((kind, *run), path, _without(made, *APART))
    if not cell.autoregressive:
        method, order = made["methods"].get(cell.method, {}), made["orders"].get(cell.order, {})
        alike = {"methods": {cell.method: _without(method, "exact")}}
        yield Shared(("method", cell.direction, cell.method), path, alike)
        yield Shared(("method", *run, cell.method), path, {"methods": {cell.method: method}})
        yield Shared(("order", cell.order), path, {"orders": {cell.order: order}})
    scores = results.of_set(cell, SCORES)
    scored = results.params(scores)
    yield Shared(("scores", cell.direction), scores, _without(scored, "made_from", "bleu"))
    yield Shared(("scores", *run), scores, {"bleu": scored.get("bleu")})
    adapter = f"{cell.run.folder(results.root)}/adapter/adapter.json"
    if record_path(adapter).is_file():  # a backbone may have none, or decode with that of another
        # The loss is that of the backbone's family.
        training = _without(results.params(adapter).get("training", {}), "loss")
        yield Shared(("training", *run, cell.pool), adapter, training)


def _without(settings: Settings, *keys: str) -> Settings:
    return {key: value for key, value in settings.items() if key not in keys}
