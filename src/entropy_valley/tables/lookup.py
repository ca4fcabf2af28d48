"""A summary of scores, looked up number by number, as the cells of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import pandas as pd

from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import BASELINES
from entropy_valley.tables import formats
from entropy_valley.tables.labels import method, ordered
from entropy_valley.tables.render import TableCell


class TestPlace(NamedTuple):
    """Where the methods are compared: one backbone on one direction's test set."""

    backbone: str
    direction: str
    testset: str


def by_kind(params: Params, summary: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The summary's rows of masked-diffusion backbones, and those of autoregressive ones."""
    autoregressive = summary["backbone"].isin({cell.backbone for cell in params.cells if cell.autoregressive})
    return summary[~autoregressive], summary[autoregressive]


def require_one_backbone(names: Collection[str]) -> None:
    """Raise :class:`InputError` for several backbones, where nothing printed would tell them apart."""
    if len(names) > 1:
        raise InputError("PARAMS", f"cells of {', '.join(names)}", "Give the cells of one backbone.")


def is_best(row: Any, rivals: Iterable[Any], metric: Metric) -> bool:
    """Whether a summary's row has the best mean of the rivals that could be deployed; an upper bound never has."""
    means = [rival.mean for rival in rivals if not method(rival.method).upper_bound]
    return not method(row.method).upper_bound and row.mean == best(metric)(means)


def best(metric: Metric) -> Callable[[Iterable[float]], float]:
    """Which of several scores is the best one."""
    return max if metric.higher_is_better else min


class Results:
    """The summary of :func:`stats.closure.summarise` for one reveal order and one step budget.

    Raises :class:`InputError` for a summary of several, whose numbers do not belong in one row.
    """

    def __init__(self, summary: pd.DataFrame) -> None:
        settings = [f"{order} T = {steps}" for order, steps in summary[["order", "steps"]].drop_duplicates().values]
        if len(settings) > 1:
            raise InputError("PARAMS", f"cells of several settings: {', '.join(settings)}", "Give one order and one T.")
        self._rows = {
            (TestPlace(row.backbone, row.direction, row.testset), row.method, row.metric): row
            for row in summary.itertuples(index=False)
        }
        self.order, self.steps = str(summary["order"].iloc[0]), int(summary["steps"].iloc[0])
        self.methods = ordered(summary["method"])
        self.places = list(dict.fromkeys(place for place, _, _ in self._rows))
        self.backbones = list(dict.fromkeys(place.backbone for place in self.places))

    def row(self, place: TestPlace, name: str, metric: Metric) -> Any:
        """The summary's row of a method, fields as in ``summarise``; :class:`InputError` if it has none."""
        if (place, name, metric.name) not in self._rows:
            problem = f"no {metric.name} of method {name}"
            raise InputError("/".join(place), problem, f"Add {name} to the matrix's methods.")
        return self._rows[place, name, metric.name]

    def is_best(self, place: TestPlace, name: str, metric: Metric) -> bool:
        """Whether a method is the best of the place, see :func:`is_best`."""
        rivals = [row for (where, _, measured), row in self._rows.items() if (where, measured) == (place, metric.name)]
        return is_best(self.row(place, name, metric), rivals, metric)

    def score(self, place: TestPlace, name: str, metric: Metric, shaded: bool = False) -> TableCell:
        """Mean ± std, bold for the best."""
        row = self.row(place, name, metric)
        text = formats.mean_std(row.mean, row.std, metric.decimals)
        return TableCell(text, self.is_best(place, name, metric), shaded)

    @property
    def mean_title(self) -> str:
        """The title of a column of means over runs."""
        return "Mean ± Std" if any(row.runs > 1 for row in self._rows.values()) else "One run"

    @property
    def baselines(self) -> list[str]:
        """The methods over which gap closures are given."""
        return [name for name in BASELINES if name in self.methods]

    def closure(
        self, place: TestPlace, name: str, metric: Metric, shaded: bool = False, baseline: str = "ratio"
    ) -> TableCell:
        """Gap closure, bold for the best; Oracle's and the baseline's hold by definition where any run has a gap.

        Fixed Ratio has none over the ratio with an EOS slot: how far it is below that one is no share of a gap.
        """
        row, prefix = self.row(place, name, metric), BASELINES[baseline]
        mean, std, runs = (getattr(row, f"{prefix}_{value}") for value in ("mean", "std", "runs"))
        if runs and name in ("oracle", baseline):
            return TableCell("100%" if name == "oracle" else "0%", shaded=shaded)
        if name in BASELINES and baseline == "ratio_eos":
            return TableCell(formats.NONE, shaded=shaded)
        text = formats.closure(mean, std, runs, row.runs)
        return TableCell(text, runs > 0 and self.is_best(place, name, metric), shaded)

    def scored(self, place: TestPlace, name: str, metric: Metric) -> list[TableCell]:
        """The score, and the gap closure over each of the baselines."""
        closures = (self.closure(place, name, metric, baseline=baseline) for baseline in self.baselines)
        return [self.score(place, name, metric), *closures]


def by_steps(summary: pd.DataFrame) -> dict[int, Results]:
    """The results of a sweep at each of its step budgets, ascending; of one reveal order and one backbone."""
    sweep = {int(steps): Results(rows) for steps, rows in summary.groupby("steps", sort=True)}
    for results in sweep.values():
        require_one_backbone(results.backbones)
    orders = sorted({results.order for results in sweep.values()})
    if len(orders) > 1:
        raise InputError("PARAMS", f"cells of several orders: {', '.join(orders)}", "Give one order.")
    return sweep
