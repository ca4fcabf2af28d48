"""What the table of a study may show: a row for each system, and the text of each column."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from entropy_valley.analysis.study import (
    BEST,
    CHANGED,
    DIFFERENCE,
    LIMITS,
    MAIN,
    SYSTEM,
    TOKENS,
    StudyParams,
    metrics_by_column,
    places,
)
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.schema import metrics_of
from entropy_valley.late import pandas as pd
from entropy_valley.reporting import formats
from entropy_valley.reporting.labels import closure_title, method
from entropy_valley.reporting.tables import Column
from entropy_valley.scoring.metrics import Metric

NOTES = {
    "mae": "MAE: mean |canvas length − reference canvas|, in slots.",
    "closure": "Gap closure: (method − Ratio) / (Oracle − Ratio) in COMET, run by run, n/a unless Oracle leads.",
    LIMITS: "Its 95 % CI: percentile bootstrap over sentences, of the closure by mean scores over runs.",
    "closure_eos": "Closure over Ratio + EOS: the same over the fixed ratio with an EOS slot, as EV has it.",
    BEST: "Closure over best ratio: the same over the fixed ratio (without that slot) with the best of these scores.",
    "lead": "Leads: sentence by sentence, percentile bootstrap in a run, two-sided p; above, below: whole intervals.",
    DIFFERENCE: "Difference: from the first backbone by the same method and seeds; tested as leads, by means of runs.",
    "cost": "Cost: calls over Fixed Ratio's.",
    "calls": "Calls: forward passes a sentence as the paper counts them.",
    "slots": "Slots: canvas slots in these calls, a sentence.",
    "passes": "Passes: those really needed, a sentence.",
    TOKENS: "Tokens: rows of prompt and canvas in these passes, a sentence.",
    CHANGED: "Changed: sentences whose text is not that of the first backbone by the same method and seed.",
    "untouched": "Untouched: sentences whose canvas is no longer than T, which a larger T cannot change.",
    "latency": "Latency: measured seconds a sentence, one at a time; the method alone, without the store.",
    "latency_batched": "Batched: the same with many sentences together.",
}


@dataclass(frozen=True)
class System:
    """A row: what it is, its mean and deviation over runs, and its runs one by one."""

    params: StudyParams
    key: Mapping[str, Any]
    mean: Mapping[str, Any]
    std: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]

    @property
    def is_tested(self) -> bool:
        """Whether it is the system whose lead over the others is shown."""
        return tuple(self.key[name] for name in SYSTEM) == tuple(self.params.against)

    def number(self, name: str, decimals: int) -> str:
        """Mean ± deviation; of a single run its value alone."""
        return formats.mean_std(self.mean[name], self.std[name], decimals)

    def lead(self) -> str:
        """The lead with its interval and p; of several runs the mean, and whether the intervals leave zero out."""
        if self.is_tested or pd.isna(self.mean["lead"]):
            return formats.NONE
        decimals = self.params.metric.decimals
        if len(self.runs) == 1:
            (run,) = self.runs
            interval = formats.interval(run["lead"], run["ci_low"], run["ci_high"], decimals)
            return f"{interval}, {formats.p_statement(run['p_two_sided'], self.params.resamples)}"
        above, below = sum(run["ci_low"] > 0 for run in self.runs), sum(run["ci_high"] < 0 for run in self.runs)
        lead = formats.signed(self.mean["lead"], decimals)
        return f"{lead} ({above} above, {below} below 0 of {len(self.runs)} runs)"

    def difference(self) -> str:
        """From the first backbone, with its interval and p; of several runs by their mean, sentence by sentence."""
        if pd.isna(self.mean["difference"]):
            return formats.NONE
        limits = (self.mean[name] for name in ("difference", "difference_low", "difference_high"))
        p = formats.p_statement(self.mean["difference_p"], self.params.resamples)
        return f"{formats.interval(*limits, self.params.metric.decimals)}, {p}"

    def closure_interval(self) -> str:
        if pd.isna(self.mean["closure_low"]):
            return formats.NONE
        return f"[{', '.join(formats.percent(self.mean[name], math.nan) for name in ('closure_low', 'closure_high'))}]"

    def cost(self) -> str:
        text = self.number("cost", 2)
        return text if text == formats.NOT_AVAILABLE else f"{text}×"

    def closure(self, column: str) -> str:
        counted = sum(not pd.isna(run[column]) for run in self.runs)
        return formats.closure(self.mean[column], self.std[column], counted, len(self.runs))

    def untouched(self) -> str:
        return formats.percent(self.mean["untouched"], self.std["untouched"])

    def changed(self) -> str:
        return formats.NONE if pd.isna(self.mean[CHANGED]) else formats.percent(self.mean[CHANGED], self.std[CHANGED])

    def grid(self) -> list[float]:
        """The candidate ratios, ascending; one for Fixed Ratio, none where the method has no grid."""
        ratios = self.params.grids.get(self.key["direction"], {}).get(self.key["method"])
        return sorted(ratios) if isinstance(ratios, Sequence) else [] if ratios is None else [ratios]

    def ratios(self) -> str:
        grid = self.grid()
        return formats.NONE if not grid else "–".join(dict.fromkeys(f"{ratio:g}" for ratio in (grid[0], grid[-1])))


Cells = Callable[[System], str]

COLUMNS: dict[str, tuple[Column, Cells]] = {
    "order": (Column("Order"), lambda system: system.key["order"]),
    "steps": (Column("T", align="r"), lambda system: str(system.key["steps"])),
    "candidates": (Column("K", align="r"), lambda system: str(len(system.grid()) or formats.NONE)),
    "ratios": (Column("Ratios"), System.ratios),
    "mae": (Column("MAE", align="r"), lambda system: system.number("mae", 2)),
    "closure": (Column(closure_title("ratio"), align="r"), lambda system: system.closure("closure")),
    LIMITS: (Column("Its 95 % CI"), System.closure_interval),
    "closure_eos": (Column(closure_title("ratio_eos"), align="r"), lambda system: system.closure("closure_eos")),
    BEST: (Column("Closure over best ratio", align="r"), lambda system: system.closure(BEST)),
    "lead": (Column("{against} − system [95 % CI], p"), System.lead),
    DIFFERENCE: (Column("Difference [95 % CI], p"), System.difference),
    "cost": (Column("Cost", align="r"), System.cost),
    "calls": (Column("Calls", align="r"), lambda system: system.number("calls", 2)),
    "slots": (Column("Slots", align="r"), lambda system: system.number("slots", 2)),
    "passes": (Column("Passes", align="r"), lambda system: system.number("passes", 2)),
    TOKENS: (Column("Tokens", align="r"), lambda system: system.number(TOKENS, 1)),
    CHANGED: (Column("Changed", align="r"), System.changed),
    "untouched": (Column("Untouched", align="r"), System.untouched),
    "latency": (Column("Latency (s)", align="r"), lambda system: system.number("latency", 4)),
    "latency_batched": (Column("Batched (s)", align="r"), lambda system: system.number("latency_batched", 4)),
}
"""Title and text of what a study may ask for beside metrics; ``{against}`` is the system whose lead is tested."""


def columns_of(params: StudyParams) -> dict[str, tuple[Column, Cells]]:
    """The columns that a study asks for."""
    metrics, rival = metrics_by_column(params.metrics), method(params.against[0]).short
    found = {}
    for name in params.columns:
        if name in metrics:
            found[name] = _metric_column(name, metrics[name])
        else:
            column, text = COLUMNS[name]
            found[name] = dataclasses.replace(column, title=column.title.replace("{against}", rival)), text
    return found


def _metric_column(name: str, metric: Metric) -> tuple[Column, Cells]:
    column = Column(metric.label, align="c" if name == MAIN else "r")
    return column, lambda system: system.number(name, metric.decimals)


def column_names(experiment: Experiment) -> list[str]:
    """What ``columns`` of a study may list: costs, then the metrics of the config, the main one as ``comet``."""
    return [*COLUMNS, *metrics_by_column(metrics_of(experiment.scoring))]


def systems(params: StudyParams, frame: pd.DataFrame) -> list[System]:
    """The rows of the table, in the order of the cells."""
    found, keys = [], [*places("pool" in frame), *SYSTEM]
    for key, group in frame.groupby(keys, sort=False):
        parts = {name: part.to_dict("records") for name, part in group.groupby("statistic")}
        named = {"pool": "", **dict(zip(keys, key, strict=True))}
        found.append(System(params, named, parts["mean"][0], parts["std"][0], parts["run"]))
    return found
