"""Putting a system's output beside its test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError


@dataclass(frozen=True)
class Outputs:
    """Sentences of one test set and one system, in the test set's order."""

    ids: list[str]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]


def read_outputs(testset: str | Path, outputs: Sequence[Mapping[str, Any]], place: object) -> Outputs:
    """Put a system's rows beside the sentences of a test set's file; ``place`` is what errors name of the system.

    Raises InputError that names the first for ids that differ in number or order, or come twice, and for a hypothesis
    that is no text.
    """
    rows = files.read_jsonl(testset, ("id", "source", "target"))
    _require_distinct(testset, [row["id"] for row in rows])
    remedy = f"Translate {testset} again: one hypothesis per sentence, in its order."
    for row, output in zip(rows, outputs, strict=False):
        if row["id"] != output["id"]:
            raise InputError(place, f"id {output['id']!r} where {row['id']!r} is due", remedy)
        if not isinstance(text := output.get("hypothesis"), str):
            raise InputError(place, f"hypothesis of {row['id']!r} is {str(text)[:60]!r}, not a text", remedy)
    if len(rows) != len(outputs):
        longer, only = (rows, testset) if len(rows) > len(outputs) else (outputs, place)
        extra = longer[min(len(rows), len(outputs))]["id"]
        problem = f"{len(outputs)} hypotheses for {len(rows)} sentences; id {extra!r} is only in {only}"
        raise InputError(place, problem, remedy)
    return Outputs(
        ids=[row["id"] for row in rows],
        sources=[row["source"] for row in rows],
        hypotheses=[output["hypothesis"] for output in outputs],
        references=[row["target"] for row in rows],
    )


def _require_distinct(testset: str | Path, ids: list[str]) -> None:
    first: dict[str, int] = {}
    for number, name in enumerate(ids, 1):
        if first.setdefault(name, number) != number:
            problem = f"id {name!r} is there already, in line {first[name]}"
            raise InputError(f"{testset}:{number}", problem, "Give each sentence an id of its own.")
