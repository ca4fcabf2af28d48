"""Means over runs: the numbers of the tables and figures, as one tidy frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from entropy_valley.analysis.gap_closure import BASELINES, gap_closure, mean, sample_std
from entropy_valley.analysis.params import ScoredCell
from entropy_valley.analysis.scores import collect
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.scoring.metrics import Metric

SETTING = ("backbone", "direction", "testset", "order", "steps")


def summarise(cells: Iterable[ScoredCell], metrics: Sequence[Metric]) -> pd.DataFrame:
    """The system scores of cells over seeds, see :func:`aggregate`."""
    return aggregate(collect(cells, metrics), metrics)


def aggregate(values: pd.DataFrame, metrics: Sequence[Metric]) -> pd.DataFrame:
    """Values of runs, as :func:`scores.collect` has them, over seeds: one row per setting, method and metric.

    Columns: those of SETTING, ``method``, ``metric``, ``mean``, ``std`` (sample, NaN for one run), ``runs``,
    ``delta_ratio`` (mean over runs of method - Ratio), ``gap_closure_mean`` and ``gap_closure_std`` (shares; per run,
    then aggregated) and ``gap_closure_runs`` (the runs that have a gap to close); with ``ratio_eos`` among the methods,
    the same over it, ``gap_closure_eos_…``.
    Raises :class:`InputError` when the methods of a setting do not have the same seeds.
    """
    rows, signs = [], {metric.name: 1 if metric.higher_is_better else -1 for metric in metrics}
    for key, group in values.groupby([*SETTING, "metric"], sort=False):
        setting = dict(zip((*SETTING, "metric"), key, strict=True))
        runs = group.pivot(index="seed", columns="method", values="value")
        _check_complete(setting, runs)
        sign = signs[setting["metric"]]
        rows += [setting | {"method": name} | _aggregate(runs, name, sign) for name in group["method"].unique()]
    columns = [*SETTING, "method", "metric"]
    frame = pd.DataFrame(rows)
    return frame[[*columns, *frame.columns.difference(columns, sort=False)]]


def _aggregate(runs: pd.DataFrame, method: str, sign: int) -> dict[str, float | int]:
    """``runs`` has one row per seed and one column per method; ``sign`` is -1 where lower is better."""
    known = runs.reindex(columns=runs.columns.union(["ratio", "oracle"]))
    closures = [
        gap_closure(*(sign * known[name] for name in (method, baseline, "oracle")), prefix)
        for baseline, prefix in BASELINES.items()
        if baseline in known
    ]
    return {
        "mean": mean(known[method]),
        "std": sample_std(known[method]),
        "runs": len(known),
        "delta_ratio": mean(known[method] - known["ratio"]),
        **dict(item for closure in closures for item in closure.items()),
    }


def _check_complete(setting: dict[str, object], runs: pd.DataFrame) -> None:
    missing = [f"{method} of seed {seed}" for seed, row in runs.iterrows() for method in row.index[row.isna()]]
    if missing:
        place = "/".join(str(setting[key]) for key in SETTING)
        raise InputError(place, f"no scores of {', '.join(missing)}", "Give every method of a table the same seeds.")
