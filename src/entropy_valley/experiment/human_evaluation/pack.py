"""A pack: which sentences annotators of a direction see, what they see of them, and the mapping that they never get.

The paper's packs have 25 sentences of each of four buckets, chosen by COMET: the largest wins of either system, the
nearest scores, and some of the rest.

``pack.json`` is ``{pack, direction, rows: [{id, source, reference, a, b}]}``. ``mapping.json`` is ``{pack, direction,
metric, rows: [{id, testset_id, a, b, bucket, difference}]}``, where ``a`` and ``b`` say which system's output it is,
``first`` or ``second``, and ``difference`` is the first's score minus the second's.
"""

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


Behind = dict[str, Any]
"""What the mapping says of a row: its ``id``, ``testset_id``, the system in each slot ``a`` and ``b``, its ``bucket``
and the ``difference``."""


def side_by_side(first: pd.DataFrame, second: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The sentences of a test set with the outputs of two systems, of which each frame has the rows, see
    :mod:`.frames`; ``metric`` is the name of the one by which they are chosen.

    Columns: ``id``, ``source``, ``reference``, ``first``, ``second`` (the outputs), and ``difference``: the first's
    score minus the second's.
    """
    # The rows of both are in the order of the test set, whatever their index.
    second = second.set_axis(first.index)
    return first[["id", "source"]].assign(
        reference=first["target"],
        first=first["hypothesis"],
        second=second["hypothesis"],
        difference=first[metric] - second[metric],
    )


def make(sentences: pd.DataFrame, direction: str, sizes: Mapping[str, int], seed: int) -> tuple[Pack, list[Behind]]:
    """The pack of chosen sentences, and what is behind each row.

    Which system is in slot A is drawn for each row by itself, with probability 1/2, and rows are shuffled; both by
    keyed hashes, so that they depend on the seed and the sentence alone. Raises as :func:`choose`.
    """
    chosen = choose(sentences, sizes, seed).to_dict("records")
    chosen.sort(key=lambda one: files.digest([seed, "place", one["id"]]))
    texts, behind = [], []
    for one in chosen:
        flipped = int(files.digest([seed, "slot", one["id"]]), 16) % 2  # a fair coin
        slots = dict(zip("ab", reversed(SYSTEMS) if flipped else SYSTEMS, strict=True))
        outputs = {slot: one[system] for slot, system in slots.items()}
        texts.append({"source": one["source"], "reference": one["reference"], **outputs})
        behind.append({"testset_id": one["id"], **slots, "bucket": one["bucket"], "difference": one["difference"]})
    # A form of another pack is told by its ids.
    code = files.digest([direction, texts])[:6]
    ids = [f"{code}-{number:03d}" for number in range(1, len(chosen) + 1)]
    rows = tuple(PackRow(name, **shown) for name, shown in zip(ids, texts, strict=True))
    return Pack(code, direction, rows), [{"id": name, **hidden} for name, hidden in zip(ids, behind, strict=True)]


def choose(sentences: pd.DataFrame, sizes: Mapping[str, int], seed: int) -> pd.DataFrame:
    """Distinct sentences, each with its ``bucket``; ``sizes`` has the number of each of BUCKETS.

    ``first_best`` and ``second_best`` have the largest differences in favour of a system, ``tied`` the smallest of the
    rest that are not zero. ``random`` are drawn from what is left, by the smallest keyed hash. Equal differences keep
    the order of the test set. Raises :class:`InputError` for a bucket that has too few sentences.
    """
    left, chosen = sentences, []
    for bucket in BUCKETS:
        differences = left["difference"]
        if bucket == "random":
            ranked = left.sort_values("id", key=lambda ids: ids.map(lambda one: files.digest([seed, "random", one])))
        elif bucket == "tied":
            # Equal outputs would waste an annotator on nothing to compare.
            ranked = left[differences != 0].sort_values("difference", key=abs, kind="stable")
        else:
            leads = differences > 0 if bucket == "first_best" else differences < 0
            ranked = left[leads].sort_values("difference", key=abs, ascending=False, kind="stable")
        if len(ranked) < sizes[bucket]:
            problem = f"{sizes[bucket]} sentences are asked for, but the test set has {len(ranked)} left for it"
            remedy = f"Lower it to {len(ranked)} or less, or take a larger test set."
            raise InputError(f"human_evaluation.sentences.{bucket}", problem, remedy)
        chosen.append(ranked.head(sizes[bucket]).assign(bucket=bucket))
        left = left.drop(chosen[-1].index)
    return pd.concat(chosen)


def write_mapping(path: str | Path, pack: Pack, metric: str, behind: Sequence[Behind]) -> None:
    """Write ``mapping.json``; ``metric`` is the name of the one that ``difference`` is in."""
    files.write_json(path, {"pack": pack.code, "direction": pack.direction, "metric": metric, "rows": behind})


def read_mapping(path: str | Path) -> dict[str, Behind]:
    """What is behind each row of the pack, by its id."""
    return {row["id"]: row for row in files.read_json(path)["rows"]}
