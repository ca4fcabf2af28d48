"""What the numbers of a table were made by: signatures and digests of its cells, checked to be comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from entropy_valley import files
from entropy_valley.analysis.params import ScoredCell
from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric

# Among which cells of a table a value must be the same: those that agree in these coordinates.
TABLE = ()
DECODING_SCOPE = {
    "decoder": ("backbone", "order", "steps"),
    "data_digest": ("direction", "testset"),
    "backbone_digest": ("backbone",),
    "shifted": ("backbone",),
    "adapter_digest": ("backbone", "direction", "seed", "pool"),
}
BARE = "null"  # the adapter of a backbone that was used as it is
SHIFTED = "true"  # a backbone whose slot i is read from row i - 1
SHORT = 12  # hex digits of a digest in print


@dataclass(frozen=True)
class Fact:
    """One line about a table's making; ``directions`` are those of the table that it holds for."""

    subject: str
    signature: str
    directions: tuple[str, ...]


def provenance(cells: Sequence[ScoredCell], metrics: Sequence[Metric]) -> tuple[Fact, ...]:
    """Signatures of a table's metrics and decoder; its data and backbones, whose logits are shifted; its adapters.

    ``metrics`` are those of the table; their signatures are read from ``scores.json``, the rest from ``decoding.json``.
    Raises :class:`InputError`, naming two files, where cells differ that must not.
    """
    systems = [(cell.path, files.read_json(cell.path)) for cell in cells]
    decoders = [(cell.decoding, files.read_json(cell.decoding)) for cell in cells]
    facts, made = [], {}
    for metric in metrics:
        values = [_metric_signature(*system, metric) for system in systems]
        _check(cells, f"the signature of {metric.label}", values, ("direction",) if metric.by_direction else TABLE)
        facts += _facts(metric.label, cells, values)
    for key, scope in DECODING_SCOPE.items():
        made[key] = [_value(*decoder, key) for decoder in decoders]
        _check(cells, f"signature.{key}", made[key], scope)
    return (*facts, *_facts("decoder", cells, made["decoder"]), *_digests(cells, made))


def _digests(cells: Sequence[ScoredCell], made: Mapping[str, Sequence[str]]) -> list[Fact]:
    """Data and backbones digest by digest, and how their logits are read; adapters, one per run, as their number and
    a digest of them all."""
    directions = tuple(dict.fromkeys(cell.direction for cell in cells))
    backbones = [cell.backbone for cell in cells]
    logits = ["shifted" if value == SHIFTED else "unshifted" for value in made["shifted"]]
    adapters = sorted(set(made["adapter_digest"]) - {BARE})
    lines = {
        "data": _listing([f"{cell.direction}/{cell.testset}" for cell in cells], made["data_digest"]),
        "backbones": _listing(backbones, made["backbone_digest"]),
        "logits": _listing(backbones, logits),
        "adapters": f"{len(adapters)}|digest of all:{files.digest(adapters)[:SHORT]}",
    }
    return [Fact(subject, line, directions) for subject, line in lines.items()]


def _listing(names: Sequence[str], values: Sequence[str]) -> str:
    """Each name once, with its value or a digest's first digits."""
    return "|".join(f"{name}:{value[:SHORT]}" for name, value in dict(zip(names, values, strict=True)).items())


def _facts(subject: str, cells: Sequence[ScoredCell], values: Sequence[str]) -> list[Fact]:
    """One fact per distinct value with the directions that have it, in the cells' order."""
    where: dict[str, dict[str, None]] = {}
    for cell, value in zip(cells, values, strict=True):
        where.setdefault(value, {})[cell.direction] = None
    return [Fact(subject, value, tuple(directions)) for value, directions in where.items()]


def _check(cells: Sequence[ScoredCell], what: str, values: Sequence[str], scope: tuple[str, ...]) -> None:
    """Among the cells that agree in ``scope``, all must have the first one's value."""
    first: dict[tuple[Any, ...], tuple[ScoredCell, str]] = {}
    for cell, value in zip(cells, values, strict=True):
        other, expected = first.setdefault(tuple(getattr(cell, key) for key in scope), (cell, value))
        if value != expected:
            problem = f"{what} is {value}, but that of {other.path} is {expected}"
            remedy = "They do not belong in one table: remove the outdated file and run again."
            raise InputError(cell.path, problem, remedy)


def _metric_signature(path: object, system: Any, metric: Metric) -> str:
    found = metric.found_in((system.get("signatures") if isinstance(system, dict) else None) or {})
    if found is None:
        raise _missing(path, f"signatures.{metric.name}")
    return found


def _missing(path: object, what: str) -> InputError:
    return InputError(path, f"no {what}", "Remove the file and run the rule that makes it again.")


def _value(path: object, content: Any, key: str) -> str:
    """A value of a file's signature as text; null is a value too, see BARE."""
    if not isinstance(content, dict) or key not in (content.get("signature") or {}):
        raise _missing(path, f"signature.{key}")
    value = content["signature"][key]
    return value if isinstance(value, str) else files.canonical(value)
