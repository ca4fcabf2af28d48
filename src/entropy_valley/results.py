"""The files of a set of cells: its translations and its scores, each a row for each sentence of each cell.

``translations.jsonl`` and ``scores.jsonl`` are tidy data: a row says its cell (test set, length method, reveal order,
step budget) and its sentence. The header beside each (``translations.json``, ``scores.json``) is the record of what it
was made from, see :mod:`entropy_valley.provenance`; its ``cells`` have what there is to say of each cell as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from entropy_valley import files
from entropy_valley.errors import InputError

TRANSLATIONS, SCORES = "translations.jsonl", "scores.jsonl"
DIAGNOSTICS = "diagnostics.json"  # of a run: the all-mask canvases that figures show
REMEDY = "Remove the file and run the rule that makes it again."


class System(NamedTuple):
    """Which cell of a run a row belongs to. A system that writes from left to right has its beam for a method, no order
    ("") and no step budget (0)."""

    testset: str
    method: str
    order: str = ""
    steps: int = 0

    @property
    def label(self) -> str:
        """As people and logs read it: ``wmt22 ev med-T32``."""
        return " ".join(filter(None, [self.testset, self.method, self.order and f"{self.order}-T{self.steps}"]))


class HasSystem(Protocol):
    """A cell of any kind."""

    testset: str
    method: str
    order: str
    steps: int


def system_of(cell: HasSystem) -> System:
    return System(cell.testset, cell.method, cell.order, cell.steps)


def header_path(path: str | Path) -> Path:
    """The header of a file of rows."""
    return Path(path).with_suffix(".json")


def moved(value: Any, root: str, here: str) -> Any:
    """Params with the paths below ``root`` below ``here`` instead: the results of a workflow that runs as a module with
    a prefix are elsewhere than its config says."""
    if isinstance(value, Mapping):
        return {moved(key, root, here): moved(one, root, here) for key, one in value.items()}
    if isinstance(value, list):
        return [moved(one, root, here) for one in value]
    inside = isinstance(value, str) and value.startswith(f"{root}/")
    return here + value.removeprefix(root) if inside else value


def tidy(cells: Mapping[System, Iterable[Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The rows of several cells as one file has them."""
    for system, rows in cells.items():
        yield from ({**system._asdict(), **row} for row in rows)


def systems(path: str | Path) -> dict[System, list[dict[str, Any]]]:
    """The rows of each cell, in the file's order and without the cell's own columns; read once while the file stays.

    Raises InputError for a row without its cell or its sentence's ``id``.
    """
    return _systems(str(path), files.version(path))


@functools.lru_cache(maxsize=8)
def _systems(path: str, version: files.Version) -> dict[System, list[dict[str, Any]]]:
    cells: dict[System, list[dict[str, Any]]] = {}
    for row in files.read_jsonl(path, (*System._fields, "id")):
        cells.setdefault(System(*(row.pop(name) for name in System._fields)), []).append(row)
    return cells


def rows(path: str | Path, cell: HasSystem) -> Sequence[dict[str, Any]]:
    """The rows of one cell; raise InputError where the file has none of it."""
    cells, system = systems(path), system_of(cell)
    if system not in cells:
        raise InputError(path, f"has no rows of {system.label}", REMEDY)
    return cells[system]


def entry(path: str | Path, cell: HasSystem) -> dict[str, Any]:
    """What the header of a file of rows says of one cell; raise InputError where it says nothing of it."""
    cells, system = entries(path), system_of(cell)
    if system not in cells:
        raise InputError(header_path(path), f"has nothing of {system.label}", REMEDY)
    return cells[system]


def entries(path: str | Path) -> dict[System, dict[str, Any]]:
    """What the header of a file of rows says of each cell; read once while it stays."""
    place = header_path(path)
    return _entries(str(place), files.version(place))


@functools.lru_cache(maxsize=128)
def _entries(path: str, version: files.Version) -> dict[System, dict[str, Any]]:
    content = files.read_json(path)
    try:
        return {System(*(one[name] for name in System._fields)): one for one in content["facts"]["cells"]}
    except (LookupError, TypeError):
        raise InputError(path, "is no header of translations or scores", REMEDY) from None
