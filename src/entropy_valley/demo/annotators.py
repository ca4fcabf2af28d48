"""Simulated annotators: they fill in forms by rule, so that the way from packs to tables can be tried without people.

They see what people see: source, reference, and two outputs in slots. Adequacy follows the share of the reference's
characters that an output has, fluency its repetitions; each annotator is stricter or milder, and errs now and then.
"""

from __future__ import annotations

import random
import re
from collections import Counter

from entropy_valley.human_evaluation.pack import Pack, Row

ERRORS = 0.15  # share of scores that are one off
REPEATED = re.compile(r"(.{2,20}?)\s*\1")  # two characters or more, twice in a row


def ratings(pack: Pack, annotator: str, seed: int) -> dict[str, tuple[str, ...]]:
    """What a simulated annotator writes in the columns behind the texts, by the id of the row."""
    leniency = random.Random(f"{seed} {annotator}").uniform(-0.4, 0.4)
    return {row.id: _row(row, leniency, random.Random(f"{seed} {annotator} {row.id}")) for row in pack.rows}


def _row(row: Row, leniency: float, chance: random.Random) -> tuple[str, ...]:
    scores = []
    for output in (row.a, row.b):
        scores.append(_score(1 + 4 * overlap(output, row.reference) + leniency, output, chance))
        scores.append(_score(4.6 - 1.5 * len(REPEATED.findall(output)) + leniency, output, chance))
    lead = sum(scores[:2]) - sum(scores[2:])
    preference = "Tie" if abs(lead) < 2 else "A" if lead > 0 else "B"
    return (*map(str, scores), preference, "")


def overlap(output: str, reference: str) -> float:
    """F1 of the characters of two texts as multisets, 0 to 1."""
    shared = sum((Counter(output) & Counter(reference)).values())
    return 2 * shared / max(1, len(output) + len(reference))


def _score(value: float, output: str, chance: random.Random) -> int:
    """A score of the scale; an empty output gets 1."""
    error = chance.choice((-1, 1)) if chance.random() < ERRORS else 0
    return min(5, max(1, round(value) + error)) if output.strip() else 1
