"""The systems of a study: their scores and costs run by run, what they close of Oracle's lead, who leads whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any

from entropy_valley import files
from entropy_valley.analysis.comparisons import against_mean, by_run
from entropy_valley.analysis.costs import per_sentence
from entropy_valley.analysis.gap_closure import BASELINES, gap_closures
from entropy_valley.analysis.intervals import closure_limits, differences
from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.analysis.scores import system_scores
from entropy_valley.late import pandas as pd
from entropy_valley.scoring.metrics import Metric

RUN = ("backbone", "direction", "testset", "pool", "seed")
SYSTEM = ("method", "order", "steps")
PLACE = tuple(key for key in RUN if key != "seed")
MAIN = "comet"  # the column of the main metric; the others have their names
COSTS = ("calls", "slots", "passes")  # per sentence
TIMED = {"latency": "single", "latency_batched": "batched"}  # of a latency, where a column has it
CLOSURES = ("closure", "closure_eos")  # over each of BASELINES
TOKENS, CHANGED, DIFFERENCE, LIMITS = "tokens", "changed", "difference", "closure_interval"  # where a column has it
BEST = "closure_best"  # over the best of the run's fixed ratios
TESTED = ("lead", "ci_low", "ci_high", "p_one_sided", "p_two_sided", "wilcoxon_p")


@dataclass(frozen=True)
class StudyParams(Params):
    """As :class:`Params`; ``columns`` of the table, and the system (method, order, T) whose lead is tested.

    ``grids`` has the candidate ratios of each method in each direction, or its one ratio. ``fixed`` are the fixed
    ratios among which ``closure_best`` takes the best one.
    """

    columns: Sequence[str] = ()
    against: Sequence[Any] = ("ev", "med", 32)
    grids: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fixed: Sequence[str] = ()


def study(params: StudyParams) -> pd.DataFrame:
    """One row per system and run, then its mean and sample standard deviation over runs (column ``statistic``).

    Columns: those of RUN, ``pool`` only where a run has one, and SYSTEM; ``comet``, the main metric, and the others by
    their names; ``mae``, the mean absolute error of the canvas length in slots; ``calls``, ``slots`` and ``passes`` per
    sentence; ``untouched``, the share of canvases that no larger T could change; ``cost``, calls over Fixed Ratio's;
    CLOSURES, and BEST where ``params.fixed`` names fixed ratios; those of TESTED for ``params.against`` minus the
    system, sentence by sentence in the main metric; and where a column has it, ``tokens`` of all passes per sentence,
    ``changed``, the share of sentences whose text is not that of the first backbone with the same system,
    what :func:`differences` and :func:`closure_limits` say of a run, or of the mean of runs, and
    ``latency`` and ``latency_batched``, medians of measured seconds per sentence: one at a time, and all together.
    What a study has no systems for is NaN. Seeds are never pooled: tests of ``params.against`` are of single runs.
    """
    runs = pd.DataFrame(_row(cell, params) for cell in params.cells)
    if CHANGED in params.columns:
        runs[CHANGED] = _changed(params.cells)
    asked = _intervals(params, (*RUN, *SYSTEM))
    runs = pd.concat([runs, _gaps(runs, params), _tests(params), asked], axis=1)
    groups = runs.groupby([*PLACE, *SYSTEM], sort=False, dropna=False)
    numbers = [name for name in runs if name not in (*RUN, *SYSTEM)]
    statistics = {"mean": groups[numbers].mean(), "std": groups[numbers].std()}
    for frame in statistics.values():
        frame[[*TESTED[1:], *asked]] = float("nan")  # limits and p-values are of single runs
        frame["runs"] = groups.size()
    statistics["mean"][[*asked]] = _intervals(params, (*PLACE, *SYSTEM)).to_numpy()
    named = [frame.reset_index().assign(statistic=name) for name, frame in statistics.items()]
    whole = pd.concat([runs.assign(statistic="run", runs=1), *named], ignore_index=True)
    place = places(any(cell.pool for cell in params.cells))
    return whole[[*place, *SYSTEM, "statistic", "seed", "runs", *numbers]]


def places(pools: bool) -> list[str]:
    """The columns that say where systems are compared; one less where no run has a pool."""
    return [name for name in PLACE if pools or name != "pool"]


def metrics_by_column(metrics: Sequence[Metric]) -> dict[str, Metric]:
    """The metrics by their columns."""
    return {MAIN: metrics[0]} | {metric.name: metric for metric in metrics[1:]}


def _row(cell: ScoredCell, params: StudyParams) -> dict[str, Any]:
    metrics, tokens = params.metrics, TOKENS in params.columns
    cost = per_sentence(cell, ["run_tokens"] if tokens else [])
    return {
        **{key: getattr(cell, key) for key in (*RUN, *SYSTEM)},
        **dict(zip(metrics_by_column(metrics), system_scores(cell, metrics).values(), strict=True)),
        "mae": cost["length_mae"],
        **{name: cost[name] for name in COSTS},
        "untouched": cost["within_steps"],
        "sentences": cost["sentences"],
        **({TOKENS: cost["run_tokens"]} if tokens else {}),
        **(_seconds(cell) if TIMED.keys() & set(params.columns) else {}),
    }


def _seconds(cell: ScoredCell) -> dict[str, float]:
    measured = files.read_json(cell.latency_file)
    return {name: measured[kind]["seconds_per_sentence"] for name, kind in TIMED.items()}


def _changed(cells: Sequence[ScoredCell]) -> list[float]:
    """Of each cell the share of texts that are not those of the first one's backbone in the same system and run; NaN
    where there is none, and for that backbone itself."""
    first, system = cells[0].backbone, attrgetter(*(name for name in (*RUN, *SYSTEM) if name != "backbone"))
    texts = {system(cell): _texts(cell) for cell in cells if cell.backbone == first}
    pairs = ((_texts(cell), texts.get(system(cell)) if cell.backbone != first else None) for cell in cells)
    return [
        float("nan") if known is None else sum(text != known.get(name) for name, text in found.items()) / len(found)
        for found, known in pairs
    ]


def _texts(cell: ScoredCell) -> dict[str, str]:
    return {row["id"]: row["hypothesis"] for row in cell.translations()}


def _intervals(params: StudyParams, keys: Sequence[str]) -> pd.DataFrame:
    """What the study asks for of each group of cells that agree in ``keys``, in the order they come."""
    found = [differences(params, keys)] if DIFFERENCE in params.columns else []
    if LIMITS in params.columns:
        found.append(closure_limits(params, keys, *params.against[1:]))
    return pd.concat(found, axis=1) if found else pd.DataFrame()


def _gaps(runs: pd.DataFrame, params: StudyParams) -> pd.DataFrame:
    """Closure and cost of each row, by Ratio and Oracle under its own order and T, or else under the main table's."""
    known = {tuple(row[key] for key in (*RUN, *SYSTEM)): row for row in runs.to_dict("records")}
    return pd.DataFrame([_gap(known, row, params) for row in known.values()])


def _gap(known: Mapping[tuple[Any, ...], Mapping[str, Any]], row: Mapping[str, Any], params: StudyParams) -> Any:
    run, sign = tuple(row[key] for key in RUN), 1 if params.metric.higher_is_better else -1
    found = dict.fromkeys((*CLOSURES, *[BEST] * bool(params.fixed), "cost"), float("nan"))
    for setting in (tuple(params.against[1:]), (row["order"], row["steps"])):  # its own setting comes last, and wins
        oracle, *rivals = (known.get((*run, method, *setting)) for method in ("oracle", *BASELINES))
        fixed = [known[key] for name in params.fixed if (key := (*run, name, *setting)) in known]
        best = max(fixed, key=lambda system: sign * system[MAIN], default=None)
        for column, rival in zip((*CLOSURES, BEST), (*rivals, best), strict=True):
            if rival and oracle:
                found[column] = gap_closures(*([sign * system[MAIN]] for system in (row, rival, oracle)))[0]
        if rivals[0] and oracle:
            found["cost"] = row["calls"] / rivals[0]["calls"]
    return found


def _tests(params: StudyParams) -> pd.DataFrame:
    """``params.against`` minus each cell's system, in the cell's run; NaN for that system itself."""
    runs = by_run(params.cells, RUN, attrgetter(*SYSTEM))
    rows = []
    for cell in params.cells:
        first = runs[attrgetter(*RUN)(cell)].get(tuple(params.against))
        if first is None or first is cell:
            rows.append(dict.fromkeys(TESTED, float("nan")))
        else:
            test = asdict(against_mean(first, [cell], **params.test))
            rows.append({"lead": test["delta"], **{name: test[name] for name in TESTED[1:]}})
    return pd.DataFrame(rows)
