"""References corrupted by a known amount: the training data of the toy COMET estimator.

A sentence is a list of units: words and punctuation marks, in Chinese single characters. Each unit gets at most one
operation, so the number of wrong units is known exactly, and quality is a function of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KINDS = ("drop", "repeat", "insert", "replace", "swap")
MIXED = "mixed"
LOWEST, HIGHEST = 0.30, 0.95  # about COMET-22's scores of an unrelated and of a perfect translation
DISPLACED = 0.5  # edits of a correct word in a wrong position

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNIT = re.compile(rf"\s*(?:[{_HAN}]|(?:[#%'’_-]|(?![{_HAN}])\w)+|[^\w\s])")
_SPACED = re.compile(rf"(?![{_HAN}])[\w#]")


@dataclass(frozen=True)
class Corruption:
    """A corrupted reference: its text, the number of wrong units, and its quality."""

    text: str
    edits: float
    quality: float


def units(text: str) -> list[str]:
    """Words, punctuation marks and Chinese characters of ``text``, each with the whitespace before it.

    The first word gets a leading space, so that units can be exchanged: strip the text that they join to.
    """
    parts = _UNIT.findall(text)
    if parts and _SPACED.match(parts[0]):
        parts[0] = " " + parts[0]
    return parts


def quality(edits: float, reference_units: int, hypothesis_units: int) -> float:
    """Target score: from HIGHEST without edits, linearly down to LOWEST if every unit is wrong.

    A missing, extra or wrong unit is one edit, a displaced one :data:`DISPLACED`. Edits are divided by the length of
    the longer sentence, so that a missing and an extra unit have the same weight.
    """
    share = edits / max(reference_units, hypothesis_units, 1)
    return HIGHEST - (HIGHEST - LOWEST) * min(1.0, share)


def corrupt(
    reference: Sequence[str], operations: Mapping[int, str], vocabulary: Sequence[str], generator: random.Random
) -> tuple[list[str], float]:
    """Apply one of :data:`KINDS` at each position of ``operations``; returns the new units and the number of edits.

    Units to swap are rotated by one. Inserted and replacing units are drawn from ``vocabulary``.
    """
    swapped = sorted(position for position, kind in operations.items() if kind == "swap")
    moved = dict(zip(swapped, swapped[1:] + swapped[:1], strict=True))
    result: list[str] = []
    edits = 0.0
    for position, unit in enumerate(reference):
        match operations.get(position):
            case "drop":
                new, cost = [], 1.0
            case "repeat":
                new, cost = [unit, unit], 1.0
            case "insert":
                new, cost = [unit, generator.choice(vocabulary)], 1.0
            case "replace":
                new = [generator.choice(vocabulary)]
                cost = float(_differ(new[0], unit))
            case "swap":
                new = [reference[moved[position]]]
                cost = DISPLACED * _differ(new[0], unit)
            case _:
                new, cost = [unit], 0.0
        result += new
        edits += cost
    return result, edits


def sample(reference: str, kind: str, vocabulary: Sequence[str], generator: random.Random) -> Corruption:
    """Corrupt ``reference`` in one way, or in ``mixed`` ways, at a random share of its units.

    The share is the square of a uniform number, so nearly correct sentences are frequent, as in translations. In half
    of the cases the corrupted units are neighbours, as in a translation that stops early; else they are scattered.
    """
    parts = units(reference)
    fewest = 2 if kind == "swap" else 1
    amount = min(len(parts), max(fewest, round(generator.random() ** 2 * len(parts))))
    if generator.random() < 0.5:
        start = generator.randint(0, len(parts) - amount)
        positions = range(start, start + amount)
    else:
        positions = generator.sample(range(len(parts)), amount)
    operations = {position: generator.choice(KINDS) if kind == MIXED else kind for position in positions}
    corrupted, edits = corrupt(parts, operations, vocabulary, generator)
    return Corruption("".join(corrupted).strip(), edits, quality(edits, len(parts), len(corrupted)))


def _differ(one: str, other: str) -> bool:
    return one.strip() != other.strip()
