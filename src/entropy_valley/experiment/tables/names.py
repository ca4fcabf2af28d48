"""What tables print of a config: its metrics, and the names of its backbones, directions, methods and orders."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell
from entropy_valley.experiment.config.methods import declares, order_settings, origins
from entropy_valley.experiment.config.schema import Study, metrics_of
from entropy_valley.experiment.stats.significance import Analysis
from entropy_valley.experiment.tables import formats
from entropy_valley.scoring.metrics import Metric


class MethodNames(NamedTuple):
    """A length method's printed names."""

    label: str
    short: str


def method_names(experiment: Experiment, name: str) -> MethodNames:
    """The printed names of a length method, as its block of the config gives them, or its own name. ``beam4`` is a beam
    search, which has no block."""
    if beam := re.fullmatch(r"beam(\d+)", name):
        return MethodNames(f"Beam search, beam {beam[1]}", "Beam")
    block = getattr(experiment.length_methods, name, None)
    label = getattr(block, "label", None) or name
    return MethodNames(label, getattr(block, "short", None) or label)


class Names:
    """The names of a config, for a table or figure of these ``cells``; ``name`` is its study, or its own name."""

    made: Sequence[str] = ()  # of the comparison with the paper: the config's tables whose numbers may be compared

    def __init__(self, experiment: Experiment, cells: Sequence[Cell] = (), name: str = "") -> None:
        self.experiment, self.cells, self.name = experiment, cells, name

    @property
    def study(self) -> Study:
        """The study of a table that each study of its layout has."""
        return self.experiment.studies[self.name]

    @property
    def statistics(self) -> Analysis:
        """How two systems are tested."""
        return self.experiment.analysis

    # Metrics.

    @functools.cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """All that its cells were scored by, the main one first."""
        return _metrics(self.experiment)

    @property
    def metric(self) -> Metric:
        """The main metric, in which systems are compared sentence by sentence: that of a COMET, so higher is better."""
        return self.metrics[0]

    @functools.cached_property
    def shown_metrics(self) -> list[Metric]:
        """Those that a table prints, unless it says otherwise."""
        return self.named_metrics(self.metric.name, "bleu")

    @functools.cached_property
    def main_metrics(self) -> list[Metric]:
        """Those of the main table."""
        return self.named_metrics(*(self.experiment.tables.metrics or [self.metric.name, "bleu"]))

    def named_metrics(self, *names: str) -> list[Metric]:
        """Metrics by their names, in this order."""
        return [metric for name in names for metric in self.metrics if metric.name == name]

    # Backbones and directions.

    def backbone(self, name: str) -> str:
        """The printed name of a backbone."""
        return self.experiment.backbones[name].label

    def place(self, direction: str, testset: str) -> str:
        """The printed direction, with its test set where the direction has more than one."""
        label = formats.direction(direction)
        return f"{label} ({testset})" if len(self._testsets.get(direction, ())) > 1 else label

    @functools.cached_property
    def _testsets(self) -> dict[str, set[str]]:
        testsets: dict[str, set[str]] = {}
        for cell in self.cells:
            testsets.setdefault(cell.direction, set()).add(cell.testset)
        return testsets

    # Length methods and reveal orders.

    def method(self, name: str) -> MethodNames:
        """The printed names of a method."""
        return method_names(self.experiment, name)

    def difference(self, first: str, second: str) -> str:
        """``EV − Ratio``, ``EV − (Ratio + EOS)``: the difference of two methods, by their short names."""
        names = [self.method(name).short for name in (first, second)]
        return " − ".join(f"({name})" if re.search(" [+−] ", name) else name for name in names)

    @functools.cached_property
    def informed(self) -> set[str]:
        """The methods of its cells that see the reference, or take the canvases of one that does: none is ever bold."""
        informed = set()
        # Beam searches have no block, and see nothing.
        for name in {cell.method for cell in self.cells} & self._methods.keys():
            for one in (name, *origins(self.experiment, name)):
                if declares(self.experiment, one, "sees_reference"):
                    informed.add(name)
        return informed

    def method_in(self, name: str, direction: str) -> str:
        """The label of a method's row in a direction. A ratio that depends on it stands behind the first part of the
        label: ``Fixed ratio 0.8 + EOS slot``."""
        label = self.method(name).label
        ratios = getattr(self._methods.get(name), "ratios", None)
        if not isinstance(ratios, Mapping) or self._methods[name].method != "ratio":
            return label
        # The number belongs to the ratio, not to the slot behind it.
        what, plus, slot = label.partition(" + ")
        return f"{what} {ratios[direction]:g}{plus}{slot}"

    @functools.cached_property
    def _methods(self) -> dict[str, Any]:
        """The blocks of the config's length methods."""
        return dict(self.experiment.length_methods)

    def order(self, name: str) -> str:
        """``Hybrid MED→SIG, p = 0.25``: a reveal order and its settings."""
        block = order_settings(self.experiment, name)
        if block["order"] not in formats.ORDERS:
            return name  # a user's own order
        texts = [formats.ORDERS[block["order"]]]
        for key, value in sorted(block["order_settings"].items()):
            if key != "seed":  # which makes no other kind of order
                texts.append(f"{key} = {value}")
        return ", ".join(texts)


@functools.cache
def _metrics(experiment: Experiment) -> tuple[Metric, ...]:
    return metrics_of(experiment.scoring)
