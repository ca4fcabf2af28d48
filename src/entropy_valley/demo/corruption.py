"""References spoiled by a known amount: what the embedded COMET estimator learns quality from.

A sentence is a list of units: words and punctuation marks, in Chinese single characters. Each unit suffers at most one
operation, so the number of wrong units is known exactly and quality is a plain function of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KINDS = ("drop", "repeat", "insert", "replace", "swap")
MIXED = "mixed"
LOWEST, HIGHEST = 0.30, 0.95  # about what COMET-22 gives to an unrelated and to a perfect translation
DISPLACED = 0.5  # edits of a right word in a wrong place

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNIT = re.compile(rf"\s*(?:[{_HAN}]|(?:[#%'’_-]|(?![{_HAN}])\w)+|[^\w\s])")
_SPACED = re.compile(rf"(?![{_HAN}])[\w#]")


@dataclass(frozen=True)
class Corruption:
    """A spoiled reference: its text, the number of wrong units, and the quality that remains."""

    text: str
    edits: float
    quality: float


def units(text: str) -> list[str]:
    """Words, punctuation marks and Chinese characters of ``text``, each with the whitespace before it.

    A first word gets a space of its own, so that units can change places; :func:`join` takes it away again.
    """
    found = _UNIT.findall(text)
    if found and _SPACED.match(found[0]):
        found[0] = " " + found[0]
    return found


def join(parts: Sequence[str]) -> str:
    """The text of a list of units."""
    return "".join(parts).strip()


def quality(edits: float, reference_units: int, hypothesis_units: int) -> float:
    """Target score: HIGHEST without edits, falling in equal steps to LOWEST when every unit is wrong.

    Edits count missing, extra and wrong units once and displaced ones :data:`DISPLACED`, as a share of the longer
    sentence: a missing and an extra unit weigh alike.
    """
    share = edits / max(reference_units, hypothesis_units, 1)
    return HIGHEST - (HIGHEST - LOWEST) * min(1.0, share)


def corrupt(
    reference: Sequence[str], operations: Mapping[int, str], vocabulary: Sequence[str], generator: random.Random
) -> tuple[list[str], float]:
    """Apply one of :data:`KINDS` to each position of ``operations``; the new units and the number of edits.

    Units to swap move on in a ring. Inserted and replacing units are drawn from ``vocabulary``.
    """
    ring = sorted(position for position, kind in operations.items() if kind == "swap")
    moved = dict(zip(ring, ring[1:] + ring[:1], strict=True))
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
    """Spoil ``reference`` in one way, or in ``mixed`` ways, at a random share of its units.

    The share is the square of a uniform number: sentences that are nearly right, as translations are, come often. Half
    of the time the spoiled units are neighbours, as when a translation breaks off; otherwise they are scattered.
    """
    parts = units(reference)
    fewest = 2 if kind == "swap" else 1
    amount = min(len(parts), max(fewest, round(generator.random() ** 2 * len(parts))))
    places = _places(len(parts), amount, generator)
    operations = {place: generator.choice(KINDS) if kind == MIXED else kind for place in places}
    spoiled, edits = corrupt(parts, operations, vocabulary, generator)
    return Corruption(join(spoiled), edits, quality(edits, len(parts), len(spoiled)))


def _places(length: int, amount: int, generator: random.Random) -> Sequence[int]:
    if generator.random() < 0.5:
        start = generator.randint(0, length - amount)
        return range(start, start + amount)
    return generator.sample(range(length), amount)


def _differ(one: str, other: str) -> bool:
    return one.strip() != other.strip()
