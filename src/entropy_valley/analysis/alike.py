"""Cells of one table are made by the same settings, as the headers of their sets say."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from entropy_valley.analysis.params import ScoredCell
from entropy_valley.analysis.signatures import UNLIKE
from entropy_valley.differences import differences
from entropy_valley.errors import InputError
from entropy_valley.files import not_there
from entropy_valley.provenance import read_record, record_path

Settings = Mapping[str, Any]
EVERYWHERE = ("revision", "precision", "head_precision", "batch_invariant", "compile_layers", "merge_adapter")
# Of a set's params: what is compared cell by cell, or differs from run to run.
APART = ("cells", "methods", "orders", "fits", "made_from")


class Shared(NamedTuple):
    """Settings of a file; all that have the same ``scope`` have the same."""

    scope: tuple[object, ...]
    path: Path
    settings: Settings


def require_alike(cells: Iterable[ScoredCell]) -> dict[str, dict[str, list[Any]]]:
    """The distinct settings of each length method, by direction and method.

    Raises :class:`InputError` for cells that differ in settings which a table's cells must share; it names two files,
    the key and both values.
    """
    first: dict[tuple[object, ...], Shared] = {}
    methods: dict[str, dict[str, list[Any]]] = {}
    params = functools.cache(_params)
    for cell in cells:
        for one in _shared(cell, params):
            other = first.setdefault(one.scope, one)
            for key, theirs, ours in differences(other.settings, one.settings):
                raise InputError(one.path, f"its {key} is {ours}, but that of {other.path} is {theirs}", UNLIKE)
        if not cell.autoregressive:
            known = methods.setdefault(cell.direction, {}).setdefault(cell.method, [])
            if (settings := params(cell.translations_file)["methods"].get(cell.method)) not in known:
                known.append(settings)
    return methods


def _shared(cell: ScoredCell, params: Callable[[Path], Settings]) -> Iterator[Shared]:
    """What a cell shares, and with which others. A backbone may have readings and products of its own."""
    path, run = cell.translations_file, (cell.backbone, cell.direction)
    made, kind = params(path), "autoregressive" if cell.autoregressive else "denoised"
    yield Shared((kind,), path, {key: made[key] for key in EVERYWHERE if key in made})
    yield Shared((kind, *run), path, _without(made, *APART))
    if not cell.autoregressive:
        method, order = made["methods"].get(cell.method, {}), made["orders"].get(cell.order, {})
        alike = {"methods": {cell.method: _without(method, "exact")}}
        yield Shared(("method", cell.direction, cell.method), path, alike)
        yield Shared(("method", *run, cell.method), path, {"methods": {cell.method: method}})
        yield Shared(("order", cell.order), path, {"orders": {cell.order: order}})
    yield Shared(("scores", cell.direction), cell.scores_file, _without(params(cell.scores_file), "made_from"))
    if record_path(cell.adapter_file).is_file():  # a backbone may have none, or decode with that of another
        # The loss is that of the backbone's family.
        training = _without(params(cell.adapter_file).get("training", {}), "loss")
        yield Shared(("training", *run, cell.pool), cell.adapter_file, training)


def _params(path: Path) -> Settings:
    """The params that a file was made by."""
    record = read_record(record_path(path))
    if record is None:
        raise not_there(record_path(path))
    return record.params


def _without(settings: Settings, *keys: str) -> Settings:
    return {key: value for key, value in settings.items() if key not in keys}
