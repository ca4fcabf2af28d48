"""Ratings of systems: what annotators said of slots, with the system behind each slot put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from entropy_valley.human_evaluation.intake import Rating
from entropy_valley.human_evaluation.pack import SYSTEMS, Unblinded


def unblinded(ratings: Sequence[Rating], behind: Mapping[str, Unblinded]) -> list[dict[str, Any]]:
    """A row for each rating, as ``ratings.jsonl`` holds it.

    ``{annotator, id, testset_id, bucket, difference, first: {adequacy, fluency}, second: …, preference, notes}``, where
    ``preference`` is ``first``, ``second`` or ``tie``.
    """
    return [_row(rating, behind[rating.id]) for rating in ratings]


def _row(rating: Rating, row: Unblinded) -> dict[str, Any]:
    slots = {row.a: "a", row.b: "b"}
    scores = {
        system: {"adequacy": rating.adequacy[slots[system]], "fluency": rating.fluency[slots[system]]}
        for system in SYSTEMS
    }
    systems = {"a": row.a, "b": row.b, "tie": "tie"}
    return {
        "annotator": rating.annotator,
        "id": row.id,
        "testset_id": row.testset_id,
        "bucket": row.bucket,
        "difference": row.difference,
        **scores,
        "preference": systems[rating.preference],
        "notes": rating.notes,
    }
