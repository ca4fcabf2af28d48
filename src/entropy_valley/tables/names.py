"""What tables print of a config: its metrics, and the names of its backbones, directions, methods and orders."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from entropy_valley.config import Experiment
from entropy_valley.config.matrix import Cell
from entropy_valley.config.methods import declares, method_settings, order_settings, origins
from entropy_valley.config.schema import Study, metrics_of
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.significance import Analysis
from entropy_valley.tables import formats
from entropy_valley.tables.formats import MethodNames


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
        """The printed names of a method, which the config may give."""
        label = getattr(self._methods.get(name), "label", None)
        return MethodNames(label, label) if label else formats.method(name)

    @functools.cached_property
    def informed(self) -> set[str]:
        """The methods of its cells that see the reference, or take the canvases of one that does: none is ever bold."""
        config, names = self.experiment, {cell.method for cell in self.cells} & self._methods.keys()
        return {
            name
            for name in names
            if any(declares(config, one, "sees_reference") for one in (name, *origins(config, name)))
        }

    def method_in(self, name: str, direction: str) -> str:
        """The label of a method's row in a direction; a fixed ratio has its number: ``Fixed ratio 0.8 + EOS slot``."""
        if getattr(self._methods.get(name), "label", None) or not self.is_ratio(name):
            return self.method(name).label
        what, plus, slot = (formats.method(name).label if name in formats.METHODS else "Fixed").partition(" + ")
        return f"{what} {self._ratio(name, direction):g}{plus}{slot}"

    def is_ratio(self, name: str) -> bool:
        """Whether a method is a fixed ratio, with a slot for the EOS or without."""
        return name in self._methods and (self._methods[name].method or name) == "ratio"

    @functools.cached_property
    def _methods(self) -> dict[str, Any]:
        """The blocks of the config's length methods."""
        return dict(self.experiment.length_methods)

    def _ratio(self, name: str, direction: str) -> float:
        return _ratio(self.experiment, name, direction)

    def order(self, name: str) -> str:
        """``Hybrid MED→SIG, p = 0.25``: a reveal order and its settings."""
        section = order_settings(self.experiment, name)
        return formats.order_label(name, section["order"], section["order_settings"])


@functools.cache
def _ratio(experiment: Experiment, name: str, direction: str) -> float:
    return method_settings(experiment, name, direction)["ratios"]


@functools.cache
def _metrics(experiment: Experiment) -> tuple[Metric, ...]:
    return metrics_of(experiment.scoring)
