"""What a table or figure is made of: the scored cells and the names to print, as its rule hands them over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from entropy_valley import run
from entropy_valley.analysis.significance import Deviation, Generator, Statistics, Zeros
from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric

Record = TypeVar("Record")


def _file(name: str, up: int = 0) -> property:
    """The path of a file beside a cell's ``scores.json``, or so many folders above it."""
    return property(lambda cell: Path(cell.path).parents[up] / name)


@dataclass(frozen=True)
class ScoredCell:
    """One cell of the experiment matrix with the path of its ``scores.json``.

    An autoregressive system reveals no slots: its order is "" and its step budget 0. ``pool`` names the smaller set of
    training pairs of its run, "" for all.
    """

    backbone: str
    direction: str
    testset: str
    seed: int
    method: str
    order: str
    steps: int
    path: str
    pool: str = ""

    @property
    def autoregressive(self) -> bool:
        """Whether it was written from left to right, not denoised."""
        return self.steps == 0

    hypotheses = _file("hypotheses.jsonl")
    segments = _file("scores.jsonl")
    decoding = _file("decoding.json")
    latency = _file("latency.json")
    canvas = _file("canvas.jsonl", up=1)  # the method's, above its orders and step budgets
    valley = _file("valley.json", up=2)  # the test set's, above its methods

    @property
    def adapter(self) -> Path:
        """``adapter.json`` of its run."""
        return Path(self.path).parents[2 if self.autoregressive else 3] / "adapter" / "adapter.json"


@dataclass(frozen=True)
class Params:
    """The rule's slice of the configuration for a job of the analysis or reporting room.

    ``metrics`` are all that the cells were scored by, the main one first; ``shown`` are the names of those that are
    printed, unless said otherwise the main one and BLEU.
    ``labels`` maps ``directions``, ``backbones`` and ``testsets`` to printed names; a name without a
    label prints as it is. ``ratios`` gives, by direction, the number of each method that is a fixed ratio. ``overlaps``
    are files by direction and test set that count the test sentences which occur in training.
    ``resamples`` to ``cohen`` are those of :class:`Statistics`.
    """

    cells: tuple[ScoredCell, ...]
    metrics: tuple[Metric, ...]
    shown: Sequence[str] = ()
    resamples: int = 10_000
    seed: int = 0
    generator: Generator = "pcg64"
    wilcoxon_zeros: Zeros = "pratt"
    cohen: Deviation = "sample"
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ratios: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    overlaps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, required: Iterable[str] = ()) -> Self:
        """Read params from a JSON file, or from JSON text.

        Keys the analysis does not use, such as ``revision``, are left out. Raises :class:`InputError` when the JSON
        is broken, there are no cells, a cell lacks a field, or one of the ``required`` keys is missing.
        """
        value = run.params(text)
        absent = _absent(value, ("cells", "metrics", *required))
        if absent:
            raise InputError("PARAMS", f"no {', '.join(absent)}", "Give the rule's params as JSON or as a JSON file.")
        known = {name: value[name] for name in (field.name for field in fields(cls)) if name in value}
        cells = tuple(record(ScoredCell, "a cell", cell) for cell in value["cells"])
        metrics = tuple(record(Metric, "a metric", metric) for metric in value["metrics"])
        return cls(**known | {"cells": cells, "metrics": metrics})

    @property
    def metric(self) -> Metric:
        """The main metric, in which systems are compared sentence by sentence."""
        return self.metrics[0]

    @property
    def how(self) -> Statistics:
        """How two systems are tested."""
        return Statistics(self.resamples, self.seed, self.generator, self.wilcoxon_zeros, self.cohen)

    @property
    def test(self) -> dict[str, Any]:
        """The metric and the :attr:`how` of the paired tests, as the functions that test cells take them."""
        return {"metric": self.metric, "how": self.how}

    @property
    def shown_metrics(self) -> list[Metric]:
        """The metrics that are printed."""
        shown = self.shown or (self.metric.name, "bleu")
        return [metric for name in shown for metric in self.metrics if metric.name == name]

    def label(self, kind: str, name: str) -> str:
        """The printed name of a direction, backbone or test set."""
        return self.labels.get(kind, {}).get(name, name)

    def place(self, direction: str, testset: str) -> str:
        """The printed direction, with its test set where the direction has more than one."""
        label = self.label("directions", direction)
        several = len({cell.testset for cell in self.cells if cell.direction == direction}) > 1
        return f"{label} ({self.label('testsets', testset)})" if several else label


def record(kind: type[Record], what: str, value: Mapping[str, Any]) -> Record:
    """The dataclass of an object that has at least its fields, else :class:`InputError` that says what lacks which."""
    names = [field.name for field in fields(kind)]
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    absent = [name for name in needed if not isinstance(value, dict) or name not in value]
    if absent:
        raise InputError("PARAMS", f"{what} without {', '.join(absent)}", f"It needs {', '.join(needed)}.")
    return kind(**{name: value[name] for name in names if name in value})


def _absent(value: Any, keys: Iterable[str]) -> list[str]:
    """The keys that an object does not have, or has empty: no cells is as bad as no list of them."""
    return [key for key in keys if not isinstance(value, dict) or value.get(key) in (None, [], "")]
