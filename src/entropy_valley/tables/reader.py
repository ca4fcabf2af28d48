"""What tables read: the files of the results, a cell at a time; and whether the cells of one table belong together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from entropy_valley import files
from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell, sets_of
from entropy_valley.errors import InputError
from entropy_valley.results import (
    DIAGNOSTICS,
    REMEDY,
    SCORES,
    TRANSLATIONS,
    System,
    ancestry,
    differences,
    entries,
    header_path,
    read_record,
    record_path,
    rows,
    system_of,
)
from entropy_valley.scoring.metrics import Metric

Settings = Mapping[str, Any]

# --- Where each file is, below a folder of results.


def set_files(experiment: Experiment, root: str, cells: Iterable[Cell]) -> list[str]:
    """The translations and scores of the sets where cells are at home, with their headers; each file once."""
    homes = dict.fromkeys(sets_of(experiment).home[cell] for cell in cells)
    return [path for one in homes for path in one.files(root)]


def diagnostics_file(root: str, cell: Cell) -> str:
    """The diagnostics of a cell's run."""
    return f"{cell.run.folder(root)}/{DIAGNOSTICS}"


def testset_file(root: str, cell: Cell) -> str:
    """The sentences of a cell's test set."""
    return f"{root}/corpus/{cell.direction}/test/{cell.testset}.jsonl"


def tokens_file(root: str, cell: Cell) -> str:
    """The token counts of a cell's test set, under the tokenizer of its backbone."""
    return f"{root}/{cell.direction}/{cell.backbone}/tokens/{cell.testset}.jsonl"


def overlap_file(root: str, cell: Cell) -> str:
    """The counts of the sentences of a cell's test set that occur in training."""
    return f"{root}/corpus/{cell.direction}/overlap/{cell.testset}.json"


# --- Their contents.

NOT_FINITE, SCORE_AGAIN = "not a finite number", "Remove the file and score the cell again."


class Results:
    """What the jobs of a config have left in the folder of results ``root``, for those who make tables of it.

    ``declared`` are the files that the reading job has named as its inputs. Any other one is an :class:`InputError`:
    Snakemake would not make the table again after it has changed. None: there is no job, and all may be read.
    So is a missing file, one that says nothing of a cell, and a row that lacks what is asked for; and declared files
    that do not belong together, see :func:`.results.faults`. ``ancestry`` is what these were made by.
    """

    def __init__(self, experiment: Experiment, root: str | Path, declared: Iterable[str | Path] | None = None) -> None:
        self.experiment, self.root = experiment, str(root)
        self.declared = None if declared is None else sorted(map(str, declared))
        self.ancestry = ancestry(self.declared or (), self.root)
        self._folders: dict[Cell, str] = {}  # of their sets
        self._headers: dict[str, dict[System, dict[str, Any]]] = {}  # by the file of rows
        self._sentences: dict[tuple[Cell, str], pd.Series] = {}
        self._params: dict[str, Settings] = {}

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

    def params(self, path: str) -> Settings:
        """The params that a file was made by."""
        if path not in self._params:
            record = read_record(record_path(path))
            if record is None:
                raise files.not_there(record_path(path))
            self._params[path] = record.params
        return self._params[path]

    # Of a cell.

    def translations(self, cell: Cell, *keys: str) -> Sequence[Mapping[str, Any]]:
        """Its translations: a row for each sentence, with ``hypothesis`` and these keys, as ``length``, the canvas'."""
        return self._having(cell, ("hypothesis", *keys), rows(self.of_set(cell, TRANSLATIONS), cell))

    def canvases(self, cell: Cell, *keys: str) -> Sequence[Mapping[str, Any]]:
        """The canvas of each sentence: its ``id``, and at least these keys."""
        translated = self._having(cell, ("canvas",), rows(self.of_set(cell, TRANSLATIONS), cell))
        return self._having(cell, keys, [{"id": row["id"], **row["canvas"]} for row in translated])

    def decoding(self, cell: Cell) -> dict[str, Any]:
        """The totals of its translations, and the ``signature`` of what they were made by."""
        return self._entry(cell, TRANSLATIONS)

    def segments(self, cell: Cell) -> Sequence[Mapping[str, Any]]:
        """The scores of each sentence."""
        return rows(self.of_set(cell, SCORES), cell)

    def scores(self, cell: Cell) -> dict[str, Any]:
        """Its system scores, and the ``signatures`` of the metrics."""
        return self._entry(cell, SCORES)

    def system_scores(self, cell: Cell, metrics: Iterable[Metric]) -> dict[str, float]:
        """Its system scores by the metrics' names; one that is not a finite number is an error."""
        values = {metric.name: self.scores(cell).get(metric.name) for metric in metrics}
        for name, value in values.items():
            if not _is_number(value):
                raise InputError(
                    self.place(cell, header_path(SCORES)), f"{name} is {value!r}, {NOT_FINITE}", SCORE_AGAIN
                )
        return values

    def sentences(self, cell: Cell, metric: Metric) -> pd.Series:
        """Its sentence scores, float, indexed by sentence id in the file's order; an id given twice is an error."""
        if (cell, metric.name) not in self._sentences:
            scored = self.segments(cell)
            values = {str(row["id"]): row.get(metric.name) for row in scored}
            for name, value in values.items():
                if not _is_number(value):
                    place = f"{self.place(cell, SCORES)}, sentence {name!r}"
                    raise InputError(place, f"{metric.name} is {value!r}, {NOT_FINITE}", SCORE_AGAIN)
            if len(values) < len(scored):
                raise InputError(self.place(cell, SCORES), "a sentence id comes twice", REMEDY)
            self._sentences[cell, metric.name] = pd.Series(values, dtype=float, name=metric.name)
        return self._sentences[cell, metric.name]

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

    def testset(self, cell: Cell, *keys: str) -> list[dict[str, Any]]:
        """The sentences of its test set, each with these keys."""
        return files.read_jsonl(self.testset_path(cell), keys)

    def testset_path(self, cell: Cell) -> str:
        """The path of the sentences of its test set."""
        return self.file(testset_file(self.root, cell))

    def tokens(self, cell: Cell) -> list[dict[str, Any]]:
        """The tokens of source and reference of each sentence."""
        keys = ("id", "source_tokens", "target_tokens")
        return files.read_jsonl(self.file(tokens_file(self.root, cell)), keys)

    def overlap(self, cell: Cell) -> dict[str, Any]:
        """How many sentences of its test set occur in training, and what is odd in either."""
        return files.read_json(self.file(overlap_file(self.root, cell)))

    def of_set(self, cell: Cell, name: str) -> str:
        """The path of a file of its set."""
        return self.file(f"{self._folder(cell)}/{name}")

    def place(self, cell: Cell, name: str | Path) -> str:
        """The place that an error names: a file of its set, and what of it is this cell's."""
        return f"{self._folder(cell)}/{name}: {system_of(cell).label}"

    def _folder(self, cell: Cell) -> str:
        if cell not in self._folders:
            self._folders[cell] = sets_of(self.experiment).home[cell].folder(self.root)
        return self._folders[cell]

    def _entry(self, cell: Cell, name: str) -> dict[str, Any]:
        """What the header of a file of its set says of it."""
        path = self.of_set(cell, name)
        if path not in self._headers:
            self._headers[path] = entries(path)
        system = (cell.testset, cell.method, cell.order, cell.steps)
        if system not in self._headers[path]:
            raise InputError(header_path(path), f"has nothing of {system_of(cell).label}", REMEDY)
        return self._headers[path][system]

    def _having(
        self, cell: Cell, keys: Sequence[str], translated: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """Rows of its translations, which must all have these keys."""
        for row in translated:
            if missing := [key for key in keys if key not in row]:
                problem = f"no {', '.join(missing)} of sentence {row['id']!r}"
                raise InputError(self.place(cell, TRANSLATIONS), problem, REMEDY)
        return translated


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# --- Cells of one table are made by the same settings, as the headers of their sets say.

# Among which cells of a table a value must be the same: those that agree in these coordinates.
TABLE = ()
RUNS = ("direction", "backbone")
DECODING_SCOPE = {
    "decoder": ("backbone", "order", "steps"),
    "data_digest": ("direction", "testset"),
    "backbone_digest": ("backbone", "seed"),
    "shifted": ("backbone",),
    "adapter_digest": ("backbone", "direction", "seed", "pool"),
}
BARE = "null"  # the adapter of a backbone that was used as it is
SHIFTED = "true"  # a backbone whose slot i is read from row i - 1
SHORT = 12  # hex digits of a digest in print
UNLIKE = "They do not belong in one table: remove the outdated files of its set and run again."


@dataclass(frozen=True)
class Fact:
    """One line about a table's making: for these ``directions``, and these ``backbones`` (none: all of them)."""

    subject: str
    signature: str
    directions: tuple[str, ...]
    backbones: tuple[str, ...] = ()


def signatures(results: Results, cells: Sequence[Cell], metrics: Sequence[Metric]) -> tuple[Fact, ...]:
    """Signatures of a table's metrics and decoder; its data and backbones, whose logits are shifted; its adapters.

    ``metrics`` are those of the table; their signatures are in headers of scores, the rest in those of translations.
    Raises :class:`InputError`, naming two cells, where cells differ that must not.
    """
    facts, made = [], {}
    for metric in metrics:
        values = [_metric_signature(results, cell, metric) for cell in cells]
        _check(cells, f"the signature of {metric.label}", values, RUNS if metric.by_direction else TABLE)
        facts += _facts(metric.label, cells, values)
    for key, scope in DECODING_SCOPE.items():
        made[key] = [_value(results, cell, key) for cell in cells]
        _check(cells, f"signature.{key}", made[key], scope)
    _check_seeds(cells, made["adapter_digest"])
    _check_pretrainings(results, cells, made["backbone_digest"])
    return (*facts, *_facts("decoder", cells, made["decoder"]), *_digests(results, cells, made))


def checkpoints(results: Results, cells: Sequence[Cell]) -> dict[str, dict[int, str]]:
    """The digest of the checkpoint that each run of a backbone starts from, by seed."""
    digests: dict[str, dict[int, str]] = {}
    for cell in cells:
        digests.setdefault(cell.backbone, {})[cell.seed] = _value(results, cell, "backbone_digest")
    return digests


def _digests(results: Results, cells: Sequence[Cell], made: Mapping[str, Sequence[str]]) -> list[Fact]:
    """Data and backbones digest by digest, and how their logits are read; adapters, one per run, as their number and
    a digest of them all."""
    directions = tuple(dict.fromkeys(cell.direction for cell in cells))
    backbones = [cell.backbone for cell in cells]
    logits = ["shifted" if value == SHIFTED else "unshifted" for value in made["shifted"]]
    adapters = sorted(set(made["adapter_digest"]) - {BARE})
    lines = {
        "data": _listing([f"{cell.direction}/{cell.testset}" for cell in cells], made["data_digest"]),
        "backbones": "|".join(f"{name}:{_of_runs(seeds)}" for name, seeds in checkpoints(results, cells).items()),
        "logits": _listing(backbones, logits),
        "adapters": f"{len(adapters)}|digest of all:{files.digest(adapters)[:SHORT]}",
    }
    return [Fact(subject, line, directions) for subject, line in lines.items()]


def _of_runs(seeds: Mapping[int, str]) -> str:
    """The first digits of the checkpoint's digest; where each run has one, a digest of them all."""
    digests = sorted(set(seeds.values()))
    return digests[0][:SHORT] if len(digests) == 1 else f"digest of all:{files.digest(digests)[:SHORT]}"


def _listing(names: Sequence[str], values: Sequence[str]) -> str:
    """Each name once, with its value or a digest's first digits."""
    return "|".join(f"{name}:{value[:SHORT]}" for name, value in dict(zip(names, values, strict=True)).items())


def _facts(subject: str, cells: Sequence[Cell], values: Sequence[str]) -> list[Fact]:
    """One fact per distinct value, with the directions that have it; and its backbones, where a direction has two."""
    backbones: dict[str, dict[str, dict[str, None]]] = {}
    for cell, value in zip(cells, values, strict=True):
        backbones.setdefault(cell.direction, {}).setdefault(value, {})[cell.backbone] = None
    where: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for direction, shared in backbones.items():
        for value, names in shared.items():
            where.setdefault((value, tuple(names) if len(shared) > 1 else ()), []).append(direction)
    return [Fact(subject, value, tuple(directions), names) for (value, names), directions in where.items()]


def _check(cells: Sequence[Cell], what: str, values: Sequence[str], scope: tuple[str, ...]) -> None:
    """Among the cells that agree in ``scope``, all must have the first one's value."""
    first: dict[tuple[Any, ...], tuple[Cell, str]] = {}
    for cell, value in zip(cells, values, strict=True):
        other, expected = first.setdefault(tuple(getattr(cell, key) for key in scope), (cell, value))
        if value != expected:
            problem = f"{what} is {value}, but that of {other.name} is {expected}"
            raise InputError(cell.name, problem, UNLIKE)


def _check_seeds(cells: Sequence[Cell], adapters: Sequence[str]) -> None:
    """Runs of several seeds have as many adapters: one adapter under two seeds would count as two runs."""
    first: dict[str, Cell] = {}
    for cell, digest in zip(cells, adapters, strict=True):
        other = first.setdefault(digest, cell)
        if digest != BARE and other.seed != cell.seed:
            raise InputError(
                cell.name, f"has the same adapter as {other.name}", "Give each seed an adapter of its own."
            )


def _check_pretrainings(results: Results, cells: Sequence[Cell], digests: Sequence[str]) -> None:
    """The runs of a backbone start from one checkpoint, or each from one of its own."""
    of_seeds = checkpoints(results, cells)
    for cell, digest in zip(cells, digests, strict=True):
        seeds = of_seeds[cell.backbone]
        if len(set(seeds.values())) not in (1, len(seeds)) and digest != next(iter(seeds.values())):
            raise InputError(cell.name, f"starts from checkpoint {digest}, and only some other runs do so", UNLIKE)


def _metric_signature(results: Results, cell: Cell, metric: Metric) -> str:
    signature = (results.scores(cell).get("signatures") or {}).get(metric.name)
    if signature is None:
        raise InputError(results.place(cell, header_path(SCORES)), f"no signatures.{metric.name}", REMEDY)
    return signature


def _value(results: Results, cell: Cell, key: str) -> str:
    """A value of the signature of a cell's translations as text; null is a value too, see BARE."""
    signature = results.decoding(cell).get("signature") or {}
    if key not in signature:
        raise InputError(results.place(cell, header_path(TRANSLATIONS)), f"no signature.{key}", REMEDY)
    return signature[key] if isinstance(signature[key], str) else files.canonical(signature[key])


EVERYWHERE = ("revision", "precision", "head_precision", "batch_invariant", "compile_layers", "merge_adapter")
# Of a set's params: what is compared cell by cell, or differs from run to run.
APART = ("cells", "methods", "orders", "fits", "made_from")


class Shared(NamedTuple):
    """Settings of a file; all that have the same ``scope`` have the same."""

    scope: tuple[object, ...]
    path: str
    settings: Settings


def require_alike(results: Results, cells: Iterable[Cell]) -> dict[str, dict[str, list[Any]]]:
    """The distinct settings of each length method, by direction and method.

    Raises :class:`InputError` for cells that differ in settings which a table's cells must share; it names two files,
    the key and both values.
    """
    first: dict[tuple[object, ...], Shared] = {}
    methods: dict[str, dict[str, list[Any]]] = {}
    for cell in cells:
        for one in _shared(results, cell):
            other = first.setdefault(one.scope, one)
            for key, theirs, ours in differences(other.settings, one.settings) if other != one else ():
                raise InputError(one.path, f"its {key} is {ours}, but that of {other.path} is {theirs}", UNLIKE)
        if not cell.autoregressive:
            of_method = methods.setdefault(cell.direction, {}).setdefault(cell.method, [])
            if (
                settings := results.params(results.of_set(cell, TRANSLATIONS))["methods"].get(cell.method)
            ) not in of_method:
                of_method.append(settings)
    return methods


def _shared(results: Results, cell: Cell) -> Iterator[Shared]:
    """What a cell shares, and with which others. A backbone may have readings and products of its own."""
    path, run = results.of_set(cell, TRANSLATIONS), (cell.backbone, cell.direction)
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
