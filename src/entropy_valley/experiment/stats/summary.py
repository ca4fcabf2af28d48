"""Means over runs of scores, gap closures and costs, of the two frames of :mod:`.frames`.

Gap closure is the share of Oracle's lead over a fixed ratio that a method recovers, run by run.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from entropy_valley.experiment.frames import CELL, MATCHED, SETTING, Loaded
from entropy_valley.experiment.stats.significance import LEVELS, Analysis, bootstrap_means
from entropy_valley.scoring.metrics import Metric

# The methods over which a share is given, and the prefix of its columns. Fixed Ratio has no slot for the EOS, as in the
# paper; with EV's it is the fair baseline.
BASELINES = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}
RESOLUTION = 1e-9  # a lead this small against the scores themselves is rounding, not a gap
CERTAIN = 1.96  # standard errors of the mean over sentences: a lead of no more may be chance


def closure(own: Any, ratio: Any, oracle: Any) -> Any:
    """(own - ratio) / (oracle - ratio) of scores, a share (1 is all of the gap): arrays of one shape, or numbers.

    NaN where Oracle does not lead: there is no gap to close. Never a huge number.
    """
    gap = oracle - ratio
    is_open = gap > RESOLUTION * np.maximum(np.abs(oracle), np.abs(ratio))
    return (own - ratio) / np.where(is_open, gap, np.nan)


LIMITS = ("closure_low", "closure_high")


def closure_limits(method: pd.Series, ratio: pd.Series, oracle: pd.Series, how: Analysis) -> dict[str, float]:
    """Limits of the share of Oracle's lead over Ratio that a method's mean closes, by the percentile bootstrap.

    Each has the mean score over runs of every sentence. The values of LIMITS are NaN where one resample in 40 has no
    gap.
    """
    scores = np.column_stack([method, ratio, oracle])
    # All three are drawn together: a resample is one set of sentences for all systems.
    drawn = bootstrap_means(scores, how)
    closures = closure(*(pd.Series(means) for means in drawn.T))
    # More resamples without a gap than lie beyond a limit: then the limit is not known.
    if closures.isna().mean() > LEVELS[0]:
        return dict.fromkeys(LIMITS, math.nan)
    return dict(zip(LIMITS, closures.quantile(list(LEVELS)), strict=True))


def may_be_chance(leads: pd.Series) -> bool:
    """Whether a mean lead over sentences may be chance: its 95 % interval, CERTAIN standard errors of the mean on
    either side, contains 0."""
    return not leads.mean() > CERTAIN * leads.sem()


def by_method(sentences: pd.DataFrame, column: str, run: Sequence[str] = MATCHED) -> pd.DataFrame:
    """A column of the sentences of each run (rows: the columns of ``run``, and ``id``) by each method (columns), NaN
    where there is none. Rows and methods are in the order of the sentences: a bootstrap draws by place."""
    keys = [*run, "id"]
    wide = sentences.pivot(index=keys, columns="method", values=column)
    rows = pd.MultiIndex.from_frame(sentences[keys].drop_duplicates())
    return wide.reindex(index=rows, columns=sentences["method"].unique())


def run_by_run(sentences: pd.DataFrame, column: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The coordinates of each run, and a column of its sentences (rows) by each of its methods (columns)."""
    for key, values in by_method(sentences, column).groupby(level=MATCHED, sort=False):
        yield dict(zip(MATCHED, key, strict=True)), values.droplevel(MATCHED).dropna(axis=1, how="all")


def doubtful_gaps(sentences: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Whether Oracle's lead over each baseline (columns) in a run (rows) :func:`may_be_chance`, so that there is no gap
    to close; NaN for a run that has not both. ``metric`` is the main one: higher is better."""
    scores = by_method(sentences, metric)
    doubtful = {}
    for name in BASELINES:
        if {"oracle", name} <= {*scores}:
            leads = (scores["oracle"] - scores[name]).dropna()
            doubtful[name] = leads.groupby(level=MATCHED, sort=False).agg(may_be_chance)
    return pd.DataFrame(doubtful)


def closures(data: Loaded, metrics: Sequence[Metric]) -> pd.DataFrame:
    """A row for each cell and metric, the main metric first: its ``value``, ``delta_ratio`` (its lead over Ratio), and
    the share of the gap over each of BASELINES; NaN in a run whose gap is doubtful in the main metric."""
    # One judgement a run, by the main metric, for all metrics.
    doubtful = doubtful_gaps(data.sentences, metrics[0].name)
    rows = data.cells.melt(CELL, [metric.name for metric in metrics], "metric", "value", ignore_index=False)
    rows = rows.sort_index(kind="stable").reset_index(drop=True)  # cell by cell
    wide = rows.pivot(index=[*MATCHED, "metric"], columns="method", values="value")
    # A study may be without either: its closures are NaN.
    wide = wide.reindex(columns=wide.columns.union(["ratio", "oracle"]))
    at = pd.MultiIndex.from_frame(rows[[*MATCHED, "metric"]])
    # A gap is a lead, also where lower is better.
    sign = rows["metric"].map({metric.name: 1 if metric.higher_is_better else -1 for metric in metrics})
    of_run = wide.reindex(at).set_axis(rows.index)
    rows["delta_ratio"] = rows["value"] - of_run["ratio"]
    for name, prefix in BASELINES.items():
        if name in of_run:
            rows[prefix] = closure(sign * rows["value"], sign * of_run[name], sign * of_run["oracle"])
        if name in doubtful:
            chance = doubtful[name].reindex(at.droplevel("metric")).eq(True)
            rows[prefix] = rows[prefix].mask(chance.to_numpy())
    return rows


def summary(data: Loaded, metrics: Sequence[Metric]) -> pd.DataFrame:
    """A row for each setting, method and metric: over its runs ``mean``, ``std`` (sample, NaN for one run), ``runs``,
    the mean ``delta_ratio``, and of the runs that have a gap to close ``gap_closure_mean``, ``…_std`` and ``…_runs``;
    with ``ratio_eos`` among the methods, the same over it, ``gap_closure_eos_…``.
    """
    rows = closures(data, metrics)
    groups = together(rows, [*SETTING, "metric"]).groupby([*SETTING, "method", "metric"], sort=False)
    table = groups["value"].agg(mean="mean", std="std", runs="count")
    table["delta_ratio"] = groups["delta_ratio"].mean()
    for prefix in BASELINES.values():
        if prefix in rows:
            table[f"{prefix}_mean"] = groups[prefix].mean()
            table[f"{prefix}_std"] = groups[prefix].std()
            table[f"{prefix}_runs"] = groups[prefix].count()
    return table.reset_index()


def together(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The rows that share these keys together; keys, and the rows of each, in the order in which they came."""
    return rows.loc[rows.groupby([*keys], sort=False).ngroup().sort_values(kind="stable").index]


COSTS = ("calls", "slots", "passes", "within_steps", "length_mae")


def costs(cells: pd.DataFrame) -> pd.DataFrame:
    """A row for each setting and method: the means over runs of COSTS, what a sentence takes."""
    means = cells.reindex(columns=[*SETTING, "method", *COSTS])
    return means.groupby([*SETTING, "method"], sort=False, as_index=False).mean()


def with_costs(data: Loaded, metrics: Sequence[Metric]) -> pd.DataFrame:
    """The summary of scores, each row with the costs of its system."""
    return summary(data, metrics).merge(costs(data.cells), "left", on=[*SETTING, "method"])
