"""Cells of one table are made by the same settings, as far as their records say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley.analysis.params import ScoredCell
from entropy_valley.differences import differences
from entropy_valley.errors import InputError
from entropy_valley.provenance import Record, read_record, record_path

Scope = tuple[str, ...]
Params = Mapping[str, Any]
ALL_CELLS = ("revision", "precision", "head_precision", "batch_invariant", "compile_layers", "merge_adapter")
REMEDY = "They do not belong in one table: remove the outdated file and run again."


def _some(*keys: str) -> Callable[[Params], Params]:
    return lambda params: {key: params[key] for key in keys if key in params}


def _selector(params: Params) -> Params:
    """How a length method is set up. A backbone may have products of its own."""
    selector = params.get("selector", {})
    return {"selector": {key: value for key, value in selector.items() if key != "exact"}}


def _training(params: Params) -> Params:
    """How an adapter was trained. The loss is of its family, and the number of processes may change."""
    return {key: value for key, value in params.get("training", {}).items() if key != "loss"}


# The file whose record is asked, what of its params is compared, and among which cells: those that agree in these
# coordinates.
COMPARED: Sequence[tuple[Callable[[ScoredCell], Path | None], Callable[[Params], Params], Scope]] = (
    (lambda cell: None if cell.autoregressive else cell.canvas, _selector, ("direction", "method")),
    (lambda cell: None if cell.autoregressive else cell.canvas, _some(*ALL_CELLS), ()),
    (lambda cell: None if cell.autoregressive else cell.canvas, dict, ("backbone", "direction", "method")),
    (lambda cell: cell.hypotheses, _some("order", "order_settings", "steps"), ("order", "steps")),
    (lambda cell: cell.hypotheses, _some(*ALL_CELLS), ()),
    (lambda cell: cell.hypotheses, dict, ("backbone", "direction", "order", "steps")),
    (lambda cell: cell.segments, dict, ("direction",)),
    (lambda cell: cell.adapter, _training, ("backbone", "direction", "pool")),
)


def require_alike(cells: Iterable[ScoredCell]) -> dict[str, dict[str, list[Any]]]:
    """The distinct settings of each length method, by direction and method.

    Raises :class:`InputError` for cells that differ in settings which a table's cells must share; it names two files,
    the key and both values. Cells without records, of before there were any, are not compared.
    """
    cells, records = list(cells), _Records()
    for path_of, part, scope in COMPARED:
        _compare(records.of(cells, path_of), part, scope)
    found: dict[str, dict[str, list[Any]]] = {}
    for cell, _, record in records.of(cells, COMPARED[0][0]):
        settings = found.setdefault(cell.direction, {}).setdefault(cell.method, [])
        if (selector := record.params.get("selector")) not in settings:
            settings.append(selector)
    return found


class _Records:
    """Records of results, each read once."""

    def __init__(self) -> None:
        self._read: dict[Path, Record | None] = {}

    def of(
        self, cells: Iterable[ScoredCell], path_of: Callable[[ScoredCell], Path | None]
    ) -> Iterator[tuple[ScoredCell, Path, Record]]:
        """The cells that have such a file with a record."""
        for cell in cells:
            path = path_of(cell)
            if path and path not in self._read:
                self._read[path] = read_record(record_path(path))
            if path and (record := self._read[path]):
                yield cell, path, record


def _compare(
    records: Iterable[tuple[ScoredCell, Path, Record]], part: Callable[[Params], Params], scope: Scope
) -> None:
    """Among the cells that agree in ``scope``, all must have the first one's settings."""
    first: dict[tuple[Any, ...], tuple[Path, Params]] = {}
    for cell, path, record in records:
        place = (record.rule, *(getattr(cell, name) for name in scope))
        other, expected = first.setdefault(place, (path, part(record.params)))
        for key, theirs, ours in differences(expected, part(record.params)):
            raise InputError(path, f"its {key} is {ours}, but that of {other} is {theirs}", REMEDY)
