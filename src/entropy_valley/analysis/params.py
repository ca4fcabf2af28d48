"""What a table or figure is made of: the scored cells and the names to print, as its rule hands them over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from entropy_valley import files, results
from entropy_valley.analysis.significance import Deviation, Generator, Statistics, Zeros
from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric

Record = TypeVar("Record")


@dataclass(frozen=True)
class ScoredCell:
    """One cell of the experiment matrix; ``path`` is the folder of its home set.

    An autoregressive system reveals no slots: its order is "" and its step budget 0. ``pool`` names the smaller set of
    training pairs of its run, "" for all.

    The methods read what its files say of it. They raise :class:`InputError` with the file's name where that is missing
    or says nothing of the cell, or where a row lacks what is asked for.
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
    def system(self) -> str:
        """How its run is decoded: ``ev/med-T32``, ``beam4``."""
        return f"{self.method}/{self.order}-T{self.steps}" if self.order else self.method

    @property
    def name(self) -> str:
        """Its name in the whole matrix: ``en-zh/llada-8b/seed1/wmt22/ev/med-T32``."""
        run = f"seed{self.seed}-{self.pool}" if self.pool else f"seed{self.seed}"
        return f"{self.direction}/{self.backbone}/{run}/{self.testset}/{self.system}"

    @property
    def autoregressive(self) -> bool:
        """Whether it was written from left to right, not denoised."""
        return self.steps == 0

    @property
    def translations_file(self) -> Path:
        return Path(self.path, results.TRANSLATIONS)

    @property
    def scores_file(self) -> Path:
        return Path(self.path, results.SCORES)

    @property
    def diagnostics_file(self) -> Path:
        return Path(self.path).parent / results.DIAGNOSTICS

    @property
    def latency_file(self) -> Path:
        return Path(self.path).parent / "latency" / self.testset / f"{self.system}.json"

    @property
    def adapter_file(self) -> Path:
        return Path(self.path).parent / "adapter" / "adapter.json"

    def within(self, path: Path) -> str:
        """The place that an error names: a file of its set, and what of it is this cell's."""
        return f"{path}: {results.system_of(self).label}"

    def translations(self) -> Sequence[Mapping[str, Any]]:
        """Its translations: a row for each sentence, with ``hypothesis``, ``length`` and what it cost."""
        return self._having(("hypothesis",), results.rows(self.translations_file, self))

    def canvases(self, *keys: str) -> Sequence[Mapping[str, Any]]:
        """The canvas of each sentence: its ``id``, and at least these keys."""
        rows = self._having(("canvas",), results.rows(self.translations_file, self))
        return self._having(keys, [{"id": row["id"], **row["canvas"]} for row in rows])

    def decoding(self) -> dict[str, Any]:
        """The totals of its translations, and the ``signature`` of what they were made by."""
        return results.entry(self.translations_file, self)

    def segments(self) -> Sequence[Mapping[str, Any]]:
        """The scores of each sentence."""
        return results.rows(self.scores_file, self)

    def scores(self) -> dict[str, Any]:
        """Its system scores, and the ``signatures`` of the metrics."""
        return results.entry(self.scores_file, self)

    def diagnostics(self, kind: str) -> Any:
        """What its run's diagnostics say of its test set: the curves of ``valley``, or the rows of ``sig``."""
        content = files.read_json(self.diagnostics_file)
        if self.testset not in content.get(kind, {}):
            raise InputError(self.diagnostics_file, f"has no {kind} of {self.testset}", results.REMEDY)
        return content[kind][self.testset]

    def _having(self, keys: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Rows of its translations, which must all have these keys."""
        for row in rows:
            if missing := [key for key in keys if key not in row]:
                problem = f"no {', '.join(missing)} of sentence {row['id']!r}"
                raise InputError(self.within(self.translations_file), problem, results.REMEDY)
        return rows


@dataclass(frozen=True)
class Params:
    """The rule's slice of the configuration for a job of the analysis or reporting room.

    ``metrics`` are all that the cells were scored by, the main one first; ``shown`` are the names of those that are
    printed, unless said otherwise the main one and BLEU.
    ``labels`` maps ``directions``, ``backbones`` and ``testsets`` to printed names; a name without a
    label prints as it is. ``ratios`` gives, by direction, the number of each method that is a fixed ratio. ``overlaps``
    are files by direction and test set that count the test sentences which occur in training.
    ``resamples`` to ``cohen`` are those of :class:`Statistics`. ``own`` has all other params of the rule, as they are.
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
    own: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: Mapping[str, Any], required: Iterable[str] = ()) -> Self:
        """Read params from a rule's, as plain values.

        Raises :class:`InputError` when there are no cells, a cell lacks a field, or one of the ``required`` keys is
        missing.
        """
        if absent := [key for key in ("cells", "metrics", *required) if value.get(key) in (None, [], "")]:
            raise InputError("PARAMS", f"no {', '.join(absent)}", "Give the rule's params.")
        known = {name: value[name] for name in (field.name for field in fields(cls)) if name in value}
        cells = tuple(record(ScoredCell, "a cell", cell) for cell in value["cells"])
        metrics = tuple(record(Metric, "a metric", metric) for metric in value["metrics"])
        own = {name: given for name, given in value.items() if name not in known}
        return cls(**known | {"cells": cells, "metrics": metrics, "own": own})

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
