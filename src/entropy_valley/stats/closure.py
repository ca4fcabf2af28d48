"""Scores and costs of cells as tidy frames, their means over runs, and gap closure.

Gap closure is the share of Oracle's lead over a fixed ratio that a method recovers, run by run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from entropy_valley.errors import InputError
from entropy_valley.results import REMEDY, SCORES, TRANSLATIONS, header_path
from entropy_valley.scoring.metrics import Metric

if TYPE_CHECKING:
    from entropy_valley.config.matrix import Cell
    from entropy_valley.tables.reader import Results

# The methods over which a share is given, and the prefix of its columns. Fixed Ratio has no slot for the EOS, as in the
# paper; with EV's it is the fair baseline.
BASELINES = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}
RESOLUTION = 1e-9  # a lead this small against the scores themselves is rounding, not a gap


def gap_closures(method: ArrayLike, ratio: ArrayLike, oracle: ArrayLike) -> np.ndarray:
    """(method - Ratio) / (Oracle - Ratio) of each run, a share (1 is all of the gap), shape (runs,).

    A run whose Oracle does not lead its Ratio has no gap to close: its value is NaN, never a huge number.
    """
    own, low, high = (np.asarray(scores, dtype=float) for scores in (method, ratio, oracle))
    gap = high - low
    open_gap = gap > RESOLUTION * np.maximum(np.abs(high), np.abs(low))
    return np.divide(own - low, gap, out=np.full(gap.shape, np.nan), where=open_gap)


def gap_closure(
    method: ArrayLike, ratio: ArrayLike, oracle: ArrayLike, prefix: str = "gap_closure"
) -> dict[str, float]:
    """``gap_closure_mean`` and ``gap_closure_std`` (sample) over the runs that have a gap; NaN where too few have one.

    ``gap_closure_runs`` is their number. Seeds are runs, never more sentences of one run.
    """
    closures = gap_closures(method, ratio, oracle)
    counted = closures[~np.isnan(closures)]
    aggregated = {"mean": mean(counted), "std": sample_std(counted), "runs": len(counted)}
    return {f"{prefix}_{name}": value for name, value in aggregated.items()}


def is_doubtful(results: Results, oracle: Cell, baseline: Cell, metric: Metric) -> bool:
    """Whether Oracle's lead in a run may be chance: its 95 % interval, 1.96 standard errors of the mean over sentences
    on either side, contains 0. Then there is no gap to close. ``metric`` is the main one: higher is better.
    """

    def compute() -> bool:
        leads = results.sentences(oracle, metric) - results.sentences(baseline, metric)
        return not leads.mean() > 1.96 * leads.sem()

    return results.once(("doubtful", oracle, baseline, metric.name), compute)


def mean(values: Sequence[float] | np.ndarray) -> float:
    """Arithmetic mean; NaN for no values."""
    return float(np.mean(values)) if len(values) else float("nan")


def sample_std(values: Sequence[float] | np.ndarray) -> float:
    """Standard deviation with n - 1 in the denominator; NaN for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


RUN = ("backbone", "direction", "testset", "order", "steps", "seed")


def by_run(
    cells: Iterable[Cell], run: Sequence[str] = RUN, system: Callable[[Cell], Any] = attrgetter("method")
) -> dict[tuple[Any, ...], dict[Any, Cell]]:
    """The cells of each run by ``system``, in the order they come; one that comes twice is an :class:`InputError`."""
    runs: dict[tuple[Any, ...], dict[Any, Cell]] = {}
    for cell in cells:
        systems = runs.setdefault(tuple(getattr(cell, key) for key in run), {})
        if system(cell) in systems:
            raise InputError(cell.name, "this cell comes twice", "Name each cell once.")
        systems[system(cell)] = cell
    return runs


def collect(results: Results, cells: Iterable[Cell], metrics: Sequence[Metric]) -> pd.DataFrame:
    """One row per cell and metric: the columns of RUN, then ``method``, ``metric`` and ``value``; the cells' order.

    Raises :class:`InputError` when a file lacks a metric or holds a value that is no finite number.
    """
    rows = [
        {**{key: getattr(cell, key) for key in (*RUN, "method")}, "metric": name, "value": value}
        for cell in cells
        for name, value in results.system_scores(cell, metrics).items()
    ]
    return pd.DataFrame(rows)


def require_means(results: Results, cells: Iterable[Cell], metric: Metric) -> None:
    """Raise :class:`InputError` for a cell whose system score in the main metric is not the mean of its sentences'."""
    for cell in cells:
        (system,), scores = results.system_scores(cell, [metric]).values(), results.sentences(cell, metric)
        if not math.isclose(system, mean(scores), rel_tol=RESOLUTION, abs_tol=RESOLUTION):
            problem = f"{metric.name} is {system}, but the mean of its rows is {mean(scores)}"
            raise InputError(results.place(cell, header_path(SCORES)), problem, REMEDY)


PLACE = ("direction", "testset")
SETTING = ("backbone", *PLACE, "order", "steps")


def summarise(results: Results, cells: Sequence[Cell], metrics: Sequence[Metric]) -> pd.DataFrame:
    """The system scores of cells over seeds, the main metric first, see :func:`aggregate`."""
    gaps = doubtful_gaps(results, cells, metrics[0])
    doubtful = {(name, *attrgetter(*RUN)(oracle)) for (name, oracle), is_chance in gaps.items() if is_chance}
    return aggregate(collect(results, cells, metrics), metrics, doubtful)


def doubtful_gaps(results: Results, cells: Iterable[Cell], metric: Metric) -> dict[tuple[str, Cell], bool]:
    """By each baseline of a run and Oracle's cell in it: whether its lead in the main metric :func:`is_doubtful`."""
    return {
        (baseline, methods["oracle"]): is_doubtful(results, methods["oracle"], methods[baseline], metric)
        for methods in by_run(cells, (*RUN, "pool")).values()
        for baseline in BASELINES
        if {"oracle", baseline} <= methods.keys()
    }


def aggregate(
    values: pd.DataFrame, metrics: Sequence[Metric], doubtful: Collection[tuple[object, ...]] = ()
) -> pd.DataFrame:
    """Values of runs, as :func:`collect` has them, over seeds: one row per setting, method and metric.

    Columns: those of SETTING, ``method``, ``metric``, ``mean``, ``std`` (sample, NaN for one run), ``runs``,
    ``delta_ratio`` (mean over runs of method - Ratio), ``gap_closure_mean`` and ``gap_closure_std`` (shares; per run,
    then aggregated) and ``gap_closure_runs`` (the runs that have a gap to close, and are not ``doubtful``, see
    :func:`doubtful_gaps`); with ``ratio_eos`` among the methods, the same over it, ``gap_closure_eos_…``.
    Raises :class:`InputError` when the methods of a setting do not have the same seeds.
    """
    rows, signs = [], {metric.name: 1 if metric.higher_is_better else -1 for metric in metrics}
    for (*place, metric), group in values.groupby([*SETTING, "metric"], sort=False):
        setting, sign = dict(zip(SETTING, place, strict=True)), signs[metric]
        runs = group.pivot(index="seed", columns="method", values="value")
        _check_complete(setting, runs)
        runs = runs.reindex(columns=runs.columns.union(["ratio", "oracle"]))
        bases = {  # NaN in a run without a gap to close
            prefix: runs[name].mask([(name, *place, seed) in doubtful for seed in runs.index])
            for name, prefix in BASELINES.items()
            if name in runs
        }
        for name in group["method"].unique():
            own = runs[name]
            row = setting | {"method": name, "metric": metric}
            row |= {"mean": mean(own), "std": sample_std(own), "runs": len(runs)}
            row["delta_ratio"] = mean(own - runs["ratio"])
            for prefix, base in bases.items():
                row |= gap_closure(sign * own, sign * base, sign * runs["oracle"], prefix)
            rows.append(row)
    return pd.DataFrame(rows)


def _check_complete(setting: dict[str, object], runs: pd.DataFrame) -> None:
    missing = [f"{method} of seed {seed}" for seed, row in runs.iterrows() for method in row.index[row.isna()]]
    if missing:
        place = "/".join(str(setting[key]) for key in SETTING)
        raise InputError(place, f"no scores of {', '.join(missing)}", "Give every method of a table the same seeds.")


COSTED = (*SETTING, "method")
TOTALS = ("calls", "slots", "passes", "within_steps")  # of a header's cell


def costs(results: Results, cells: Iterable[Cell]) -> pd.DataFrame:
    """One row per system: the columns of COSTED, then the means over runs of what a sentence takes.

    ``calls`` and ``slots`` as the paper counts them, ``passes`` as the engine needs them; ``within_steps`` is the
    share of canvases that more steps than T leave as they are. ``length_mae`` is the header's own mean, NaN where it
    has none. Raises :class:`InputError` for a header that lacks a total.
    """
    return means_over_runs(cells, lambda cell: per_sentence(results, cell)).drop(columns="sentences")


def means_over_runs(cells: Iterable[Cell], numbers: Callable[[Cell], Mapping[str, float]]) -> pd.DataFrame:
    """One row per system: the columns of COSTED, then the means over runs of the ``numbers`` of a cell."""
    rows = [{**{key: getattr(cell, key) for key in COSTED}, **numbers(cell)} for cell in cells]
    return pd.DataFrame(rows).groupby(list(COSTED), sort=False, as_index=False).mean()


def with_costs(summary: pd.DataFrame, results: Results, cells: Iterable[Cell]) -> pd.DataFrame:
    """A summary of scores (:func:`summarise`), each row with the costs of its system."""
    return summary.merge(costs(results, cells), on=list(COSTED), how="left", validate="many_to_one")


def per_sentence(results: Results, cell: Cell, more: Sequence[str] = ()) -> dict[str, float]:
    """What a sentence of one cell takes on average, as :func:`costs` names it, and ``more`` of the header's totals; and
    the number of ``sentences``."""
    info = results.decoding(cell)
    missing = [name for name in ("sentences", *TOTALS, *more) if name not in info]
    if missing:
        raise InputError(results.place(cell, header_path(TRANSLATIONS)), f"no {', '.join(missing)}", REMEDY)
    means = {name: info[name] / info["sentences"] for name in (*TOTALS, *more)}
    return {"sentences": info["sentences"], **means, "length_mae": float(info.get("length_mae", math.nan))}
