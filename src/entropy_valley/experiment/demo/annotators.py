"""Simulated annotators: they fill in forms by rule, so that packs, forms and tables can be tried without people.

They see what people see: source, reference, and two outputs in slots. Adequacy follows the share of the reference's
characters that an output has, fluency its repetitions; each annotator is stricter or milder, and errs now and then.
"""

import random
import re
from collections import Counter

from entropy_valley.experiment.human_evaluation.pack import Pack

ERRORS = 0.15  # share of scores that are one off
REPEATED = re.compile(r"(.{2,20}?)\s*\1")  # two characters or more, twice in a row


def ratings(pack: Pack, annotator: str, seed: int) -> dict[str, tuple[str, ...]]:
    """What a simulated annotator writes in the columns after the texts, by the id of the row."""
    leniency = random.Random(f"{seed} {annotator}").uniform(-0.4, 0.4)
    columns = {}
    for row in pack.rows:
        generator, scores = random.Random(f"{seed} {annotator} {row.id}"), []
        for output in (row.a, row.b):
            scores.append(_score(1 + 4 * overlap(output, row.reference) + leniency, output, generator))
            scores.append(_score(4.6 - 1.5 * len(REPEATED.findall(output)) + leniency, output, generator))
        lead = sum(scores[:2]) - sum(scores[2:])
        preference = "Tie" if abs(lead) < 2 else "A" if lead > 0 else "B"
        columns[row.id] = (*map(str, scores), preference, "")
    return columns


def overlap(output: str, reference: str) -> float:
    """F1 of the characters of two texts as multisets, 0 to 1."""
    shared = sum((Counter(output) & Counter(reference)).values())
    return 2 * shared / max(1, len(output) + len(reference))


def _score(value: float, output: str, generator: random.Random) -> int:
    """A score from 1 to 5; an empty output gets 1."""
    error = generator.choice((-1, 1)) if generator.random() < ERRORS else 0
    return min(5, max(1, round(value) + error)) if output.strip() else 1
