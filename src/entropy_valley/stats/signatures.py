"""Cells of one table are made by the same settings, as the headers of their sets say."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.files import not_there
from entropy_valley.provenance import differences, read_record, record_path
from entropy_valley.results import REMEDY, header_path
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import ScoredCell

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


def provenance(cells: Sequence[ScoredCell], metrics: Sequence[Metric]) -> tuple[Fact, ...]:
    """Signatures of a table's metrics and decoder; its data and backbones, whose logits are shifted; its adapters.

    ``metrics`` are those of the table; their signatures are in headers of scores, the rest in those of translations.
    Raises :class:`InputError`, naming two cells, where cells differ that must not.
    """
    facts, made = [], {}
    for metric in metrics:
        values = [_metric_signature(cell, metric) for cell in cells]
        _check(cells, f"the signature of {metric.label}", values, RUNS if metric.by_direction else TABLE)
        facts += _facts(metric.label, cells, values)
    for key, scope in DECODING_SCOPE.items():
        made[key] = [_value(cell, key) for cell in cells]
        _check(cells, f"signature.{key}", made[key], scope)
    _check_seeds(cells, made["adapter_digest"])
    _check_pretrainings(cells, made["backbone_digest"])
    return (*facts, *_facts("decoder", cells, made["decoder"]), *_digests(cells, made))


def checkpoints(cells: Sequence[ScoredCell]) -> dict[str, dict[int, str]]:
    """The digest of the checkpoint that each run of a backbone starts from, by seed."""
    digests: dict[str, dict[int, str]] = {}
    for cell in cells:
        digests.setdefault(cell.backbone, {})[cell.seed] = _value(cell, "backbone_digest")
    return digests


def _digests(cells: Sequence[ScoredCell], made: Mapping[str, Sequence[str]]) -> list[Fact]:
    """Data and backbones digest by digest, and how their logits are read; adapters, one per run, as their number and
    a digest of them all."""
    directions = tuple(dict.fromkeys(cell.direction for cell in cells))
    backbones = [cell.backbone for cell in cells]
    logits = ["shifted" if value == SHIFTED else "unshifted" for value in made["shifted"]]
    adapters = sorted(set(made["adapter_digest"]) - {BARE})
    lines = {
        "data": _listing([f"{cell.direction}/{cell.testset}" for cell in cells], made["data_digest"]),
        "backbones": "|".join(f"{name}:{_of_runs(seeds)}" for name, seeds in checkpoints(cells).items()),
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


def _facts(subject: str, cells: Sequence[ScoredCell], values: Sequence[str]) -> list[Fact]:
    """One fact per distinct value, with the directions that have it; and its backbones, where a direction has two."""
    backbones: dict[str, dict[str, dict[str, None]]] = {}
    for cell, value in zip(cells, values, strict=True):
        backbones.setdefault(cell.direction, {}).setdefault(value, {})[cell.backbone] = None
    where: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for direction, shared in backbones.items():
        for value, names in shared.items():
            where.setdefault((value, tuple(names) if len(shared) > 1 else ()), []).append(direction)
    return [Fact(subject, value, tuple(directions), names) for (value, names), directions in where.items()]


def _check(cells: Sequence[ScoredCell], what: str, values: Sequence[str], scope: tuple[str, ...]) -> None:
    """Among the cells that agree in ``scope``, all must have the first one's value."""
    first: dict[tuple[Any, ...], tuple[ScoredCell, str]] = {}
    for cell, value in zip(cells, values, strict=True):
        other, expected = first.setdefault(tuple(getattr(cell, key) for key in scope), (cell, value))
        if value != expected:
            problem = f"{what} is {value}, but that of {other.name} is {expected}"
            raise InputError(cell.name, problem, UNLIKE)


def _check_seeds(cells: Sequence[ScoredCell], adapters: Sequence[str]) -> None:
    """Runs of several seeds have as many adapters: one adapter under two seeds would count as two runs."""
    first: dict[str, ScoredCell] = {}
    for cell, digest in zip(cells, adapters, strict=True):
        other = first.setdefault(digest, cell)
        if digest != BARE and other.seed != cell.seed:
            raise InputError(
                cell.name, f"has the same adapter as {other.name}", "Give each seed an adapter of its own."
            )


def _check_pretrainings(cells: Sequence[ScoredCell], digests: Sequence[str]) -> None:
    """The runs of a backbone start from one checkpoint, or each from one of its own."""
    of_seeds = checkpoints(cells)
    for cell, digest in zip(cells, digests, strict=True):
        seeds = of_seeds[cell.backbone]
        if len(set(seeds.values())) not in (1, len(seeds)) and digest != next(iter(seeds.values())):
            raise InputError(cell.name, f"starts from checkpoint {digest}, and only some other runs do so", UNLIKE)


def _metric_signature(cell: ScoredCell, metric: Metric) -> str:
    found = (cell.scores().get("signatures") or {}).get(metric.name)
    if found is None:
        raise InputError(cell.within(header_path(cell.scores_file)), f"no signatures.{metric.name}", REMEDY)
    return found


def _value(cell: ScoredCell, key: str) -> str:
    """A value of the signature of a cell's translations as text; null is a value too, see BARE."""
    signature = cell.decoding().get("signature") or {}
    if key not in signature:
        raise InputError(cell.within(header_path(cell.translations_file)), f"no signature.{key}", REMEDY)
    return signature[key] if isinstance(signature[key], str) else files.canonical(signature[key])


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
    scored = params(cell.scores_file)
    yield Shared(("scores", cell.direction), cell.scores_file, _without(scored, "made_from", "bleu"))
    yield Shared(("scores", *run), cell.scores_file, {"bleu": scored.get("bleu")})
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
