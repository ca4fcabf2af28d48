"""What a table or figure is made of: the scored cells and the names to print, as its rule hands them over."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from entropy_valley import files, provenance, results
from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.significance import Statistics


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

    def translations(self, *keys: str) -> Sequence[Mapping[str, Any]]:
        """Its translations: a row for each sentence, with ``hypothesis`` and these keys, as ``length``, the canvas'."""
        return self._having(("hypothesis", *keys), results.rows(self.translations_file, self))

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


class Params(dict[str, Any]):
    """The params of a table or figure: the plain values of its rule, and as objects what most of them have.

    ``metrics`` are all that the cells were scored by, the main one first; ``shown`` are the names of those that are
    printed, unless said otherwise the main one and BLEU. ``labels`` maps ``directions``, ``backbones``, ``methods`` and
    ``testsets`` to printed names. ``ratios`` gives, by method and direction, the number of a fixed ratio. ``overlaps``
    are files by direction and test set that count the test sentences which occur in training. ``made_from`` are the
    results that are read.
    """

    ancestry = provenance.Ancestry()

    @classmethod
    def of(cls, params: Mapping[str, Any], how: Mapping[str, str]) -> Self:
        """The params of a rule; ``how`` says where the results are: ``root`` as the params have it, ``here`` for this
        process.

        Raises :class:`InputError` for results that do not belong together, see :func:`provenance.faults`.
        """
        values = cls(results.moved(params, how["root"], how["here"]))
        values.ancestry = provenance.ancestry(values.get("made_from", ()), how["here"])
        return values

    @functools.cached_property
    def cells(self) -> tuple[ScoredCell, ...]:
        return tuple(ScoredCell(**cell) for cell in self["cells"])

    @functools.cached_property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(Metric(**metric) for metric in self["metrics"])

    @property
    def metric(self) -> Metric:
        """The main metric, in which systems are compared sentence by sentence."""
        return self.metrics[0]

    @property
    def shown_metrics(self) -> list[Metric]:
        """The metrics that are printed."""
        shown = self.get("shown") or (self.metric.name, "bleu")
        return [metric for name in shown for metric in self.metrics if metric.name == name]

    @property
    def how(self) -> Statistics:
        """How two systems are tested."""
        return Statistics(**{key: self[key] for key in Statistics.__dataclass_fields__ if key in self})

    @property
    def test(self) -> dict[str, Any]:
        """The metric and the :attr:`how` of the paired tests, as the functions that test cells take them."""
        return {"metric": self.metric, "how": self.how}

    def label(self, kind: str, name: str) -> str:
        """The printed name of a direction, backbone or test set; one without a label prints as it is."""
        return self["labels"].get(kind, {}).get(name, name)

    def place(self, direction: str, testset: str) -> str:
        """The printed direction, with its test set where the direction has more than one."""
        label = self.label("directions", direction)
        several = len({cell.testset for cell in self.cells if cell.direction == direction}) > 1
        return f"{label} ({self.label('testsets', testset)})" if several else label
