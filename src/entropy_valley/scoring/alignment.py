"""Putting a system's output beside its test set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from entropy_valley import files
from entropy_valley.errors import InputError


@dataclass(frozen=True)
class Outputs:
    """Sentences of one test set and one system, in the test set's order."""

    ids: list[str]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]


def read_outputs(testset: str | Path, hypotheses: str | Path) -> Outputs:
    """Read both files; ids that differ in number or order, or come twice, are an InputError that names the first."""
    rows = files.read_jsonl(testset, ("id", "source", "target"))
    outputs = files.read_jsonl(hypotheses, ("id", "hypothesis"))
    _require_distinct(testset, [row["id"] for row in rows])
    remedy = f"Decode {testset} again: one hypothesis per sentence, in its order."
    for number, (row, output) in enumerate(zip(rows, outputs, strict=False), 1):
        if row["id"] != output["id"]:
            raise InputError(f"{hypotheses}:{number}", f"id {output['id']!r} where {row['id']!r} is due", remedy)
    if len(rows) != len(outputs):
        longer, path = (rows, testset) if len(rows) > len(outputs) else (outputs, hypotheses)
        extra = longer[min(len(rows), len(outputs))]["id"]
        problem = f"{len(outputs)} hypotheses for {len(rows)} sentences; id {extra!r} is only in {path}"
        raise InputError(hypotheses, problem, remedy)
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
