"""A pack: which sentences annotators of a direction see, what they see of them, and the mapping that they never get.

The paper's packs have 25 sentences of each of four buckets, chosen by COMET: the largest wins of either system, the
nearest scores, and some of the rest.

``pack.json`` is ``{pack, direction, rows: [{id, source, reference, a, b}]}``. ``mapping.json`` is ``{pack, direction,
metric, rows: [{id, testset_id, a, b, bucket, difference}]}``, where ``a`` and ``b`` say which system's output it is,
``first`` or ``second``, and ``difference`` is the first's score minus the second's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from entropy_valley import files
from entropy_valley.errors import InputError

BUCKETS = ("first_best", "second_best", "tied", "random")
SYSTEMS = ("first", "second")
SCALES = ("adequacy", "fluency")  # of each output
LANGUAGES = ("en", "zh")  # of the guidelines


@dataclass(frozen=True)
class PackSentence:
    """A test sentence with the outputs of both systems; ``difference`` is the first's score minus the second's."""

    id: str
    source: str
    reference: str
    first: str
    second: str
    difference: float


@dataclass(frozen=True)
class PackRow:
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
    rows: tuple[PackRow, ...]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The pack of a ``pack.json``."""
        content = files.read_json(path)
        return cls(content["pack"], content["direction"], tuple(PackRow(**row) for row in content["rows"]))

    def write(self, path: str | Path) -> None:
        """Write it as ``pack.json``."""
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


def side_by_side(first: pd.DataFrame, second: pd.DataFrame, metric: str) -> list[PackSentence]:
    """The sentences of a test set with the outputs of two systems, of which each frame has the rows, see
    :mod:`.frames`; ``metric`` is the name of the one by which they are chosen."""
    columns = (first["id"], first["source"], first["target"], first["hypothesis"], second["hypothesis"])
    differences = first[metric] - second[metric]
    return [PackSentence(*row) for row in zip(*columns, differences, strict=True)]


def make(
    sentences: Sequence[PackSentence], direction: str, sizes: Mapping[str, int], seed: int
) -> tuple[Pack, list[Unblinded]]:
    """The pack of chosen sentences, and what is behind each row.

    Which system is in slot A is drawn for each row by itself, with probability 1/2, and rows are shuffled; both by
    keyed hashes, so that they depend on the seed and the sentence alone. Raises as :func:`choose`.
    """
    chosen = sorted(choose(sentences, sizes, seed), key=lambda pair: files.digest([seed, "place", pair[0].id]))
    slots, texts = [], []
    for sentence, _ in chosen:
        flipped = int(files.digest([seed, "slot", sentence.id]), 16) % 2  # a fair coin
        slots.append(dict(zip("ab", reversed(SYSTEMS) if flipped else SYSTEMS, strict=True)))
        outputs = {slot: getattr(sentence, system) for slot, system in slots[-1].items()}
        texts.append({"source": sentence.source, "reference": sentence.reference, **outputs})
    code = files.digest([direction, texts])[:6]
    names = [f"{code}-{number:03d}" for number in range(1, len(chosen) + 1)]
    rows = tuple(PackRow(name, **shown) for name, shown in zip(names, texts, strict=True))
    behind = [
        Unblinded(name, sentence.id, **slot, bucket=bucket, difference=sentence.difference)
        for name, (sentence, bucket), slot in zip(names, chosen, slots, strict=True)
    ]
    return Pack(code, direction, rows), behind


def choose(sentences: Sequence[PackSentence], sizes: Mapping[str, int], seed: int) -> list[tuple[PackSentence, str]]:
    """Distinct sentences, each with its bucket; ``sizes`` has the number of each of BUCKETS.

    ``first_best`` and ``second_best`` have the largest differences in favour of a system, ``tied`` the smallest of the
    rest that are not zero. ``random`` are drawn from what is left, by the smallest keyed hash. Equal differences keep
    the order of the test set. Raises :class:`InputError` for a bucket that has too few sentences.
    """
    left, chosen = list(sentences), []
    for bucket in BUCKETS:
        ranked = _ranked(bucket, left, seed)
        if len(ranked) < sizes[bucket]:
            problem = f"{sizes[bucket]} sentences are asked for, but the test set has {len(ranked)} left for it"
            remedy = f"Lower it to {len(ranked)} or less, or take a larger test set."
            raise InputError(f"human_evaluation.sentences.{bucket}", problem, remedy)
        taken = ranked[: sizes[bucket]]
        chosen += [(sentence, bucket) for sentence in taken]
        left = [sentence for sentence in left if sentence not in taken]
    return chosen


def _ranked(bucket: str, sentences: Sequence[PackSentence], seed: int) -> list[PackSentence]:
    """The sentences that a bucket may have, the best first."""
    if bucket == "first_best":
        return sorted((one for one in sentences if one.difference > 0), key=lambda one: -one.difference)
    if bucket == "second_best":
        return sorted((one for one in sentences if one.difference < 0), key=lambda one: one.difference)
    if bucket == "tied":
        return sorted((one for one in sentences if one.difference), key=lambda one: abs(one.difference))
    return sorted(sentences, key=lambda one: files.digest([seed, "random", one.id]))


def write_mapping(path: str | Path, pack: Pack, metric: str, behind: Sequence[Unblinded]) -> None:
    """Write ``mapping.json``; ``metric`` is the name of the one that ``difference`` is in."""
    rows = [asdict(row) for row in behind]
    files.write_json(path, {"pack": pack.code, "direction": pack.direction, "metric": metric, "rows": rows})


def read_mapping(path: str | Path, pack: Pack) -> dict[str, Unblinded]:
    """What is behind each row of the pack, by its id. Raises :class:`InputError` for the mapping of another pack."""
    content: dict[str, Any] = files.read_json(path)
    if content["pack"] != pack.code:
        problem = f"is of pack {content['pack']}, not of {pack.code}"
        raise InputError(path, problem, "Use the mapping that was made with the pack.")
    return {row["id"]: Unblinded(**row) for row in content["rows"]}
