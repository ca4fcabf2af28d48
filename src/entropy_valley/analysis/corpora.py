"""The training pairs of each direction: how many were read, dropped for what, and drawn; and their length ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from entropy_valley import files, provenance
from entropy_valley.analysis.params import record
from entropy_valley.data.filters import REASONS
from entropy_valley.late import pandas as pd
from entropy_valley.model.prompt import PERCENTILES

SIDES = ("source", "target")
RATIOS = ("median", "mean", "pairs", *(f"p{percent}" for percent in PERCENTILES))
UNKNOWN = float("nan")


@dataclass(frozen=True)
class Direction:
    """A direction: its printed name, the name of its source, and its ``corpus.json`` and ``length_ratios.json``."""

    direction: str
    label: str
    source: str
    report: str
    ratios: str


@dataclass(frozen=True)
class CorpusParams:
    """The directions, the printed names of the backbones whose tokenizers count, and the medians of the paper by
    direction, as it prints them; none where they are of other data."""

    directions: tuple[Direction, ...]
    backbones: Mapping[str, str]
    paper: Mapping[str, str]

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """Read params from a rule's."""
        directions = tuple(record(Direction, "a direction", one) for one in value["directions"])
        return cls(directions, dict(value["backbones"]), value["paper"])


def corpora(params: CorpusParams) -> pd.DataFrame:
    """The tidy numbers: ``direction``, ``backbone``, ``metric``, ``value``.

    Of a direction (backbone ""): ``read``, ``dropped`` and its parts ``dropped_source_short`` and the like, ``kept``,
    ``train``, ``dev``. The parts are NaN where the job that drew the pairs did not count them. Of each tokenizer:
    ``length_ratio_median``, ``length_ratio_mean``, ``length_ratio_pairs``, and ``length_ratio_p10`` and the like, of
    |y|/|x| of the training pairs in tokens.
    """
    rows = [row for one in params.directions for row in (*_counts(one), *_ratios(one))]
    return pd.DataFrame(rows, columns=["direction", "backbone", "metric", "value"])


def filters(direction: Direction) -> dict[str, Any]:
    """The length limits that the pairs had to be within, by language."""
    return files.read_json(direction.report)["filters"]


def digest(direction: Direction) -> str:
    """That of the training pairs."""
    return files.read_json(direction.report)["digest"]["train"]


def _counts(one: Direction) -> Iterator[tuple[str, str, str, float]]:
    counts = files.read_json(one.report)["counts"]
    read, dropped = counts["read"], counts["filtered"]
    found = {"read": read, "dropped": dropped, **_reasons(one, dropped), "kept": read - dropped}
    for metric, value in {**found, "train": counts["train"], "dev": counts["dev"]}.items():
        yield one.direction, "", metric, value


def _reasons(one: Direction, dropped: int) -> dict[str, float]:
    """How many pairs were dropped for each reason, as the record of their job says."""
    made = provenance.record_of(one.report)
    said = made.facts.get("dropped") if made else None
    known = said if said is not None else None if dropped else {}
    languages = dict(zip(SIDES, one.direction.split("-"), strict=True))
    return {
        f"dropped_{side}_{why}": UNKNOWN if known is None else known.get(language, {}).get(why, 0)
        for side, language in languages.items()
        for why in REASONS
    }


def _ratios(one: Direction) -> Iterator[tuple[str, str, str, float]]:
    for backbone, found in files.read_json(one.ratios).items():
        for name in (name for name in RATIOS if name in found):  # a file of an earlier version has no percentiles
            yield one.direction, backbone, f"length_ratio_{name}", found[name]
