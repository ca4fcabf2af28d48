"""What tables that read cell by cell ask of the statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from entropy_valley.config.matrix import Cell
from entropy_valley.errors import InputError
from entropy_valley.frames import Frames
from entropy_valley.results import REMEDY, SCORES, TRANSLATIONS, header_path
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats import comparisons, summary
from entropy_valley.stats.comparisons import LIMITS
from entropy_valley.stats.significance import Analysis, PairedTest, paired_test
from entropy_valley.stats.summary import BASELINES, CERTAIN, RESOLUTION
from entropy_valley.tables.reader import Results

PLACE = ("direction", "testset")
SETTING = ("backbone", *PLACE, "order", "steps")
RUN = (*SETTING, "seed")
COSTED = (*SETTING, "method")
TOTALS = ("calls", "slots", "passes", "within_steps")  # of a header's cell


def frames(results: Results, cells: Iterable[Cell], metrics: Sequence[Metric]) -> Frames:
    """The two frames of these cells, with the main metric of each sentence."""
    rows, scores = [], []
    for cell in cells:
        key = {"pool": "", **cell.key()}
        rows.append(key | results.system_scores(cell, metrics))
        of_cell = results.sentences(cell, metrics[0])
        scores.append(pd.DataFrame({metrics[0].name: of_cell}).rename_axis("id").reset_index().assign(**key))
    return Frames(pd.concat(scores, ignore_index=True), pd.DataFrame(rows))


def summarise(results: Results, cells: Sequence[Cell], metrics: Sequence[Metric]) -> pd.DataFrame:
    return summary.summary(frames(results, cells, metrics), metrics)


def compare(results: Results, cells: Iterable[Cell], metric: Metric, how: Analysis) -> pd.DataFrame:
    tests = comparisons.compare(frames(results, cells, [metric]).sentences, metric.name, how)
    return tests[[*RUN, *(name for name in tests if name not in (*RUN, "pool"))]]


def compare_autoregressive(results: Results, cells: Sequence[Cell], metric: Metric, how: Analysis) -> pd.DataFrame:
    return comparisons.compare_autoregressive(frames(results, cells, [metric]).sentences, metric.name, how)


def closure_limits(
    results: Results, systems: Sequence[Sequence[Cell]], metric: Metric, how: Analysis
) -> dict[str, float]:
    if len(systems) < 3:
        return dict.fromkeys(LIMITS, math.nan)
    return comparisons.closure_limits(*(mean_scores(results, one, metric) for one in systems), how)


def is_doubtful(results: Results, oracle: Cell, baseline: Cell, metric: Metric) -> bool:
    """Whether Oracle's lead in a run may be chance: its 95 % interval, 1.96 standard errors of the mean over sentences
    on either side, contains 0. Then there is no gap to close. ``metric`` is the main one: higher is better.
    """

    def compute() -> bool:
        leads = results.sentences(oracle, metric) - results.sentences(baseline, metric)
        return not leads.mean() > CERTAIN * leads.sem()

    return results.once(("doubtful", oracle, baseline, metric.name), compute)


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


def doubtful_gaps(results: Results, cells: Iterable[Cell], metric: Metric) -> dict[tuple[str, Cell], bool]:
    """By each baseline of a run and Oracle's cell in it: whether its lead in the main metric :func:`is_doubtful`."""
    return {
        (baseline, methods["oracle"]): is_doubtful(results, methods["oracle"], methods[baseline], metric)
        for methods in by_run(cells, (*RUN, "pool")).values()
        for baseline in BASELINES
        if {"oracle", baseline} <= methods.keys()
    }


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


def of_shared_seeds(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of the seeds that all backbones have in a direction and test set; all of them where no seed is shared.

    So the means of two backbones differ by just the mean of their differences run by run.
    """
    seeds: dict[tuple[str, str], dict[str, set[int]]] = {}
    for cell in cells:
        seeds.setdefault((cell.direction, cell.testset), {}).setdefault(cell.backbone, set()).add(cell.seed)
    shared = {place: set.intersection(*of_backbone.values()) for place, of_backbone in seeds.items()}
    return [cell for cell in cells if cell.seed in (shared[cell.direction, cell.testset] or {cell.seed})]


def compare_means(
    results: Results, cells: Sequence[Cell], others: Sequence[Cell], metric: Metric, how: Analysis
) -> PairedTest:
    """The test of two systems: of each the sentence-wise mean of its runs, or of several systems."""
    return paired_test(mean_scores(results, cells, metric), mean_scores(results, others, metric), how)


def mean_scores(results: Results, cells: Sequence[Cell], metric: Metric) -> pd.Series:
    """The mean of systems' scores, sentence by sentence."""
    return sum(results.sentences(cell, metric) for cell in cells) / len(cells)


def gap_closures(method: ArrayLike, ratio: ArrayLike, oracle: ArrayLike) -> np.ndarray:
    """(method - Ratio) / (Oracle - Ratio) of each run, a share (1 is all of the gap), shape (runs,).

    A run whose Oracle does not lead its Ratio has no gap to close: its value is NaN, never a huge number.
    """
    own, low, high = (np.asarray(scores, dtype=float) for scores in (method, ratio, oracle))
    gap = high - low
    open_gap = gap > RESOLUTION * np.maximum(np.abs(high), np.abs(low))
    return np.divide(own - low, gap, out=np.full(gap.shape, np.nan), where=open_gap)


def mean(values: Sequence[float] | np.ndarray | pd.Series) -> float:
    """Arithmetic mean; NaN for no values."""
    return float(np.mean(values)) if len(values) else float("nan")


def sample_std(values: Sequence[float] | np.ndarray | pd.Series) -> float:
    """Standard deviation with n - 1 in the denominator; NaN for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
