"""Gap closure: the share of Oracle's lead over a fixed ratio that a method recovers, run by run; and means over runs.

The functions take the two frames of results, see :mod:`.keys`. The frame of cells has a column for each metric with
the score of the system, the frame of sentences one with the score of each sentence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from entropy_valley.errors import InputError
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.comparisons import run_by_run
from entropy_valley.stats.keys import RUN, SETTING
from entropy_valley.stats.significance import LEVELS, Analysis, bootstrap_means

# The methods over which a share is given, and the prefix of its columns. Fixed Ratio has no slot for the EOS, as in the
# paper; with EV's it is the fair baseline.
BASELINES = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}
RESOLUTION = 1e-9  # a lead this small against the scores themselves is rounding, not a gap
Z = 1.96  # standard errors on either side of a mean: its 95 % interval


def gap_closures(method: ArrayLike, ratio: ArrayLike, oracle: ArrayLike) -> np.ndarray:
    """(method - Ratio) / (Oracle - Ratio) of each run, a share (1 is all of the gap), shape (runs,).

    A run whose Oracle does not lead its Ratio has no gap to close: its value is NaN, never a huge number.
    """
    own, low, high = (np.asarray(scores, dtype=float) for scores in (method, ratio, oracle))
    gap = high - low
    open_gap = gap > RESOLUTION * np.maximum(np.abs(high), np.abs(low))
    return np.divide(own - low, gap, out=np.full(gap.shape, np.nan), where=open_gap)


def may_be_chance(leads: pd.Series) -> bool:
    """Whether the 95 % interval of a mean lead contains 0: :data:`Z` standard errors over sentences on either side.

    ``leads`` has the lead on each sentence. The lead of a single sentence may always be chance.
    """
    return not leads.mean() > Z * leads.sem()


def chance_leads(sentences: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Where Oracle's lead over a fixed ratio may be chance, so that there is no gap to close.

    A row for each run and each of BASELINES that it has beside Oracle: the columns of RUN, ``baseline``, ``chance``.
    ``metric`` is the main one: higher is better.
    """
    rows = []
    for run, scores in run_by_run(sentences, metric):
        for baseline in BASELINES:
            if {"oracle", baseline} <= {*scores}:
                chance = may_be_chance(scores["oracle"] - scores[baseline])
                rows.append({**run, "baseline": baseline, "chance": chance})
    return pd.DataFrame(rows, columns=[*RUN, "baseline", "chance"]).astype({"chance": bool})


def summarise(cells: pd.DataFrame, sentences: pd.DataFrame, metrics: Sequence[Metric]) -> pd.DataFrame:
    """System scores over seeds, the main metric first: one row per setting, metric and method.

    Columns: those of SETTING, ``method``, ``metric``, ``mean``, ``std`` (sample, NaN for one run), ``runs``,
    ``delta_ratio`` (mean over runs of method - Ratio), ``gap_closure_mean`` and ``gap_closure_std`` (shares; per run,
    then aggregated) and ``gap_closure_runs``: the runs that have a gap to close. Those where Oracle's lead in the main
    metric may be chance are left out in all metrics: the mean is conditional on that lead. With ``ratio_eos`` among the
    methods, the same over it, ``gap_closure_eos_…``.
    Raises :class:`InputError` when the methods of a setting do not have the same seeds.
    """
    leads = chance_leads(sentences, metrics[0].name)
    chance = leads[leads["chance"]].groupby([*SETTING, "baseline"])["seed"].agg(list).to_dict()
    rows = []
    for key, of_setting in cells.groupby(SETTING, sort=False):
        setting = dict(zip(SETTING, key, strict=True))
        _require_all_runs(setting, of_setting)
        no_gap = {baseline: chance.get((*key, baseline), []) for baseline in BASELINES}
        for metric in metrics:
            scores = of_setting.pivot(index="seed", columns="method", values=metric.name)
            for method in of_setting["method"].unique():
                named = setting | {"method": method, "metric": metric.name}
                rows.append(named | over_runs(scores, method, no_gap, metric.higher_is_better))
    return pd.DataFrame(rows)


def over_runs(
    scores: pd.DataFrame, method: str, no_gap: dict[str, list[int]], higher_is_better: bool = True
) -> dict[str, float]:
    """What :func:`summarise` says of a method; ``scores`` has a row for each seed, a column for each method.

    ``no_gap`` has the seeds without a gap to each of BASELINES.
    """
    own, absent = scores[method], pd.Series(np.nan, scores.index)
    ratio, oracle = (scores.get(name, absent) for name in ("ratio", "oracle"))
    values = {"mean": mean(own), "std": sample_std(own), "runs": len(own), "delta_ratio": mean(own - ratio)}
    sign = 1 if higher_is_better else -1
    for baseline, prefix in BASELINES.items():
        if baseline == "ratio" or baseline in scores:
            low = scores.get(baseline, absent).mask(scores.index.isin(no_gap.get(baseline, [])))
            closures = gap_closures(sign * own, sign * low, sign * oracle)
            counted = closures[~np.isnan(closures)]
            values |= {f"{prefix}_mean": mean(counted), f"{prefix}_std": sample_std(counted)}
            values[f"{prefix}_runs"] = len(counted)
    return values


LIMITS = ("closure_low", "closure_high")


def closure_limits(method: pd.Series, ratio: pd.Series, oracle: pd.Series, how: Analysis) -> dict[str, float]:
    """Limits of the share of Oracle's lead over Ratio that a method's mean closes, by the percentile bootstrap.

    Each has the mean score over runs of every sentence. The values of LIMITS are NaN where one resample in 40 has no
    gap.
    """
    scores = np.column_stack([method, ratio, oracle])
    closures = gap_closures(*bootstrap_means(scores, how.resamples, how.seed, how.generator).T)
    if np.isnan(closures).mean() > LEVELS[0]:
        return dict.fromkeys(LIMITS, math.nan)
    return dict(zip(LIMITS, map(float, np.nanquantile(closures, LEVELS)), strict=True))


def _require_all_runs(setting: dict[str, object], cells: pd.DataFrame) -> None:
    present = set(zip(cells["seed"], cells["method"], strict=True))
    missing = [
        f"{method} of seed {seed}"
        for seed in sorted(cells["seed"].unique())
        for method in sorted(cells["method"].unique())
        if (seed, method) not in present
    ]
    if missing:
        place = "/".join(str(value) for value in setting.values() if value != "")
        raise InputError(place, f"no scores of {', '.join(missing)}", "Give every method of a table the same seeds.")


def mean(values: Sequence[float] | np.ndarray | pd.Series) -> float:
    """Arithmetic mean; NaN for no values."""
    return float(np.mean(values)) if len(values) else float("nan")


def sample_std(values: Sequence[float] | np.ndarray | pd.Series) -> float:
    """Standard deviation with n - 1 in the denominator; NaN for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
