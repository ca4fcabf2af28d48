"""A pack: what annotators of a direction see, and the mapping that they never get.

``pack.json`` is ``{pack, direction, rows: [{id, source, reference, a, b}]}``. ``mapping.json`` is ``{pack, direction,
metric, rows: [{id, testset_id, a, b, bucket, difference}]}``, where ``a`` and ``b`` say which system's output it is,
``first`` or ``second``, and ``difference`` is the first's score minus the second's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.human_evaluation.sampling import Sentence, choose

SYSTEMS = ("first", "second")


@dataclass(frozen=True)
class Row:
    """What annotators see of a sentence; ``a`` and ``b`` are the outputs in the slots System A and System B."""

    id: str
    source: str
    reference: str
    a: str
    b: str


@dataclass(frozen=True)
class Pack:
    """The rows of a direction in the order of the form; ``code`` names the pack, and begins each row's id."""

    code: str
    direction: str
    rows: tuple[Row, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """The pack of a ``pack.json``."""
        content = files.read_json(path)
        return cls(content["pack"], content["direction"], tuple(Row(**row) for row in content["rows"]))

    def write(self, path: Path) -> None:
        content = {"pack": self.code, "direction": self.direction, "rows": [asdict(row) for row in self.rows]}
        files.write_json(path, content)


@dataclass(frozen=True)
class Unblinded:
    """What the mapping says of a row: its test sentence, the system in each slot, its bucket and score difference."""

    id: str
    testset_id: str
    a: str
    b: str
    bucket: str
    difference: float


def make(
    sentences: Sequence[Sentence], direction: str, sizes: Mapping[str, int], seed: int
) -> tuple[Pack, list[Unblinded]]:
    """The pack of chosen sentences, and what is behind each row.

    Which system is in slot A is drawn for each row by itself, with probability 1/2, and rows are shuffled; both by
    keyed hashes, so that they depend on the seed and the sentence alone. Raises as :func:`choose`.
    """
    chosen = sorted(choose(sentences, sizes, seed), key=lambda one: files.digest([seed, "place", one[0].id]))
    slots = [_slots(sentence, seed) for sentence, _ in chosen]
    texts = [_texts(sentence, slot) for (sentence, _), slot in zip(chosen, slots, strict=True)]
    code = files.digest([direction, texts])[:6]
    names = [f"{code}-{number:03d}" for number in range(1, len(chosen) + 1)]
    rows = tuple(Row(name, **shown) for name, shown in zip(names, texts, strict=True))
    behind = [
        Unblinded(name, sentence.id, **slot, bucket=bucket, difference=sentence.difference)
        for name, (sentence, bucket), slot in zip(names, chosen, slots, strict=True)
    ]
    return Pack(code, direction, rows), behind


def _slots(sentence: Sentence, seed: int) -> dict[str, str]:
    """The system in each slot; a fair coin."""
    flipped = int(files.digest([seed, "slot", sentence.id]), 16) % 2
    return dict(zip("ab", reversed(SYSTEMS) if flipped else SYSTEMS, strict=True))


def _texts(sentence: Sentence, slots: Mapping[str, str]) -> dict[str, str]:
    """What is shown of a sentence, by the field of its row."""
    outputs = {slot: getattr(sentence, system) for slot, system in slots.items()}
    return {"source": sentence.source, "reference": sentence.reference, **outputs}


def write_mapping(path: Path, pack: Pack, metric: str, behind: Sequence[Unblinded]) -> None:
    rows = [asdict(row) for row in behind]
    files.write_json(path, {"pack": pack.code, "direction": pack.direction, "metric": metric, "rows": rows})


def read_mapping(path: Path, pack: Pack) -> dict[str, Unblinded]:
    """What is behind each row of the pack, by its id. Raises :class:`InputError` for the mapping of another pack."""
    content: dict[str, Any] = files.read_json(path)
    if content["pack"] != pack.code:
        problem = f"is of pack {content['pack']}, not of {pack.code}"
        raise InputError(path, problem, "Use the mapping that was made with the pack.")
    return {row["id"]: Unblinded(**row) for row in content["rows"]}
