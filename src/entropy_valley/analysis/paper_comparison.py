"""The paper's numbers against ours: value by value, the signs of differences, and the orders of systems."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from entropy_valley import files
from entropy_valley.analysis.our_numbers import Ours, Setting, ours, place_of
from entropy_valley.analysis.published import Published, deviation, means
from entropy_valley.late import pandas as pd

NONE = float("nan")
NOT_RUN, NO_TABLE = "not run", "not compared"
KEYS = ("label", "backbone", "direction", "setting", "system", "metric")
NUMBERS = ("paper", "paper_std", "ours", "ours_std", "difference")
ACROSS_BACKBONES = ("tab:ar_reference",)  # their systems are of several backbones
DEVIATIONS = 2  # a difference of more sample standard deviations over runs is outside of their spread


@dataclass(frozen=True)
class ComparisonParams:
    """``tables`` are the CSV files of ours by name.

    ``names`` says what the config calls the paper's backbones and test sets. ``values`` says whether sizes can be
    compared: with other models, data or another metric only signs and orders can. ``paper_label`` is the label of the
    paper's main metric, ``metric_label`` that of ours.
    """

    tables: Mapping[str, str]
    names: Mapping[str, str]
    metric: str
    metric_label: str
    steps: int
    seeds: Sequence[int]
    values: bool
    paper_label: str = "COMET-22"
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """Read params from a rule's."""
        return cls(**{name: value[name] for name in cls.__dataclass_fields__ if name in value})


@dataclass(frozen=True)
class Pair:
    """A number of the paper and ours, if it was run; ``state`` says why it is not there."""

    number: Published
    std: float
    ours: Ours | None
    state: str
    ordered: bool

    @property
    def difference(self) -> float:
        """Ours minus the paper's, as the paper prints it (per cent for shares)."""
        return NONE if self.ours is None else self.number.scale * self.ours.value - self.number.value

    def row(self, kind: str, verdict: str, **other: Any) -> dict[str, Any]:
        """A row of the comparison."""
        scale = self.number.scale
        ours, std = (scale * value for value in self.ours) if self.ours else (NONE, NONE)
        values = (self.number.value, self.std, ours, std, self.difference)
        described = {key: getattr(self.number, key) for key in (*KEYS, "what", "text")}
        return {"kind": kind, **described, **dict(zip(NUMBERS, values, strict=True)), "verdict": verdict, **other}


def compare(params: ComparisonParams) -> pd.DataFrame:
    """One row for each comparison.

    Columns: ``kind`` (value, sign, order), those of :class:`Published` (``text`` is the value as printed, or the order
    of the systems), NUMBERS in the paper's unit, ``ours_text`` (of an order) and ``verdict``:

    - of a value: equal (as far as it is printed), within or outside (of :data:`DEVIATIONS` sample standard deviations
      over runs, the larger of both), differs (without any deviation), holds or fails (of a bound);
    - of a sign and an order: same, other, or which share of the pairs of systems is in the paper's order;
    - not run: the config did not ask for it; not compared: no table of ours has it.
    """
    pairs = list(_pairs(params))
    values = [pair.row("value", _verdict(pair)) for pair in pairs]
    signs = [pair.row("sign", _sign(pair)) for pair in pairs if pair.number.signed and pair.number.value]
    labels = list(dict.fromkeys(pair.number.label for pair in pairs))
    rows = [*(values if params.values else signs), *_orders(pairs)]
    return pd.DataFrame(sorted(rows, key=lambda row: labels.index(row["label"])))


def _pairs(params: ComparisonParams) -> Iterator[Pair]:
    setting = Setting(params.names, params.metric, params.steps, params.seeds)
    tables = {name: _rows(path) for name, path in params.tables.items()}
    for number in means():
        place, std = place_of(number), deviation(number)
        rows = tables.get(place.table) if place else None
        found = ours(number, place, rows, setting) if place and rows is not None else None
        state = NO_TABLE if place is None else NOT_RUN if found is None else ""
        yield Pair(number, std.value if std else NONE, found, state, bool(place and place.order))


def _rows(path: str) -> pd.DataFrame:
    """A CSV file as texts."""
    return pd.read_csv(io.StringIO("\n".join(files.read_lines(path))), dtype=str, keep_default_na=False)


def _verdict(pair: Pair) -> str:
    number = pair.number
    if pair.ours is None:
        return pair.state
    if number.relation in ("<", "≤"):
        value, bound = number.scale * pair.ours.value, number.value
        holds = value < bound if number.relation == "<" else value <= bound + number.rounding
        return "holds" if holds else "fails"
    beyond = abs(pair.difference) - number.rounding * (1 + 1e-9)
    if beyond <= 0:
        return "equal"
    spreads = [std for std in (pair.std, number.scale * pair.ours.std) if not math.isnan(std)]
    if not spreads:
        return "differs"
    return "within" if beyond <= DEVIATIONS * max(spreads) else "outside"


def _sign(pair: Pair) -> str:
    if pair.ours is None:
        return pair.state
    return "same" if pair.ours.value * pair.number.value > 0 else "other"


def _orders(pairs: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """A row for each group of systems that differ in nothing else."""
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        if pair.ordered:
            number = pair.number
            backbone = "" if number.label in ACROSS_BACKBONES else number.backbone
            group = (number.label, backbone, number.direction, number.setting, number.metric)
            groups.setdefault(group, []).append(pair)
    for group in groups.values():
        if len({pair.number.value for pair in group}) > 1:
            yield _order(group)


def _order(group: Sequence[Pair]) -> dict[str, Any]:
    there = [pair for pair in group if pair.ours]
    comparable = len({pair.number.value for pair in there}) > 1
    paper = _sorted({pair.number.system: pair.number.value for pair in group})
    ours = _sorted({pair.number.system: pair.ours.value for pair in there if pair.ours})
    shown = group[0].row("order", _agreement(there) if comparable else NOT_RUN)
    return {**shown, **dict.fromkeys(NUMBERS, NONE), "system": "", "what": "", "text": paper, "ours_text": ours}


def _sorted(values: Mapping[str, float]) -> str:
    """``oracle > ev = ratio``: systems from the largest value down."""
    falling = sorted(values, key=lambda name: -values[name])
    signs = (" = " if values[one] == values[other] else " > " for one, other in itertools.pairwise(falling))
    return "".join(itertools.chain.from_iterable(zip(falling, [*signs, ""], strict=False)))


def _agreement(group: Sequence[Pair]) -> str:
    """How many pairs that differ in the paper are in its order here."""
    pairs = [(one, other) for one, other in itertools.permutations(group, 2) if one.number.value > other.number.value]
    same = sum(one.ours.value > other.ours.value for one, other in pairs if one.ours and other.ours)
    return "same" if same == len(pairs) else f"{same} of {len(pairs)} pairs"
