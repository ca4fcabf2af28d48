"""Is it the source that chooses EV's canvas? The paper's "Selector checks", as one tidy frame."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from entropy_valley.analysis.comparisons import against_mean, by_run
from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.analysis.scores import RUN
from entropy_valley.analysis.summary import summarise
from entropy_valley.analysis.valley import curves, over_runs
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.lengths.base import candidate_length
from entropy_valley.results import REMEDY

METHOD = "ev"
ALTERNATIVES = ("ev_sum", "ev_normalised", "ev_median")
PERMUTATION = re.compile(r"(ev_reassigned(?:_deciles)?)_\d+")
PLACE = ("direction", "testset")


@dataclass(frozen=True)
class SelectorParams(Params):
    """Params of one backbone's cells; ``grids`` has EV's ratios by direction."""

    grids: Mapping[str, Sequence[float]] = field(default_factory=dict)


def measure(params: SelectorParams) -> pd.DataFrame:
    """Every number. Columns: those of PLACE, ``seed`` (none: over seeds), ``check``, ``item``, ``metric``, ``value``.

    Checks: ``sweep`` (items first, lowest, last; metrics ratio and entropy), ``chosen`` (item: the place of a nominal
    ratio in EV's grid, from 1; metrics ratio, share and count, the mean over seeds), ``score`` (item: a method; mean,
    std) and ``test`` (item: what EV is compared with; the fields of :class:`PairedTest`, run by run).
    """
    ev = [cell for cell in params.cells if cell.method == METHOD]
    if not ev:
        raise InputError("PARAMS", "no cell of method ev", "Give EV's cells, and those it is compared with.")
    rows = [*_sweep(ev), *_chosen(params, ev), *_scores(params), *_tests(params)]
    return pd.DataFrame(rows, columns=[*PLACE, "seed", "check", "item", "metric", "value"])


def groups(methods: Sequence[str]) -> dict[str, list[str]]:
    """What EV is compared with, by name: the permutations of a reassignment together, an alternative by itself."""
    found: dict[str, list[str]] = {}
    for method in methods:
        match = PERMUTATION.fullmatch(method)
        if match or method in ALTERNATIVES:
            found.setdefault(match[1] if match else method, []).append(method)
    order = ("ev_reassigned", "ev_reassigned_deciles", *ALTERNATIVES)
    return {name: found[name] for name in order if name in found}


def _rows(place: Sequence[object], check: str, item: object, numbers: Mapping[str, object], seed: object = None):
    return [(*place, seed, check, str(item), metric, value) for metric, value in numbers.items()]


def _sweep(ev: Sequence[ScoredCell]) -> Iterator[tuple[object, ...]]:
    points = over_runs(curves(ev))
    for place, line in points[points["axis"] == "ratios"].groupby(list(PLACE), sort=False):
        line = line.sort_values("at")
        named = {"first": line.iloc[0], "lowest": line.loc[line["mean"].idxmin()], "last": line.iloc[-1]}
        for item, point in named.items():
            numbers = {"ratio": point["at"], "entropy": point["mean"], "sentences": point["sentences"]}
            yield from _rows(place, "sweep", item, numbers)


def _chosen(params: SelectorParams, ev: Sequence[ScoredCell]) -> Iterator[tuple[object, ...]]:
    for place in dict.fromkeys((cell.direction, cell.testset) for cell in ev):
        grid = sorted(params.grids[place[0]])
        counts = [nominal_ratios(cell, grid) for cell in ev if (cell.direction, cell.testset) == place]
        for number, ratio in enumerate(grid, 1):
            count = sum(run[ratio] for run in counts) / len(counts)
            share = sum(run[ratio] / run.total() for run in counts) / len(counts)
            yield from _rows(place, "chosen", number, {"ratio": ratio, "count": count, "share": share})


def nominal_ratios(cell: ScoredCell, grid: Sequence[float]) -> Counter[float]:
    """How many sentences of an EV cell have the canvas of each ratio of an ascending grid; the first that gives it.

    Raises :class:`InputError` for a canvas that is none of the grid's.
    """
    tokens = cell.diagnostics("valley")["source_tokens"]
    counts: Counter[float] = Counter()
    for row in cell.canvases("length"):
        # Exact products first: one in binary floating point may be a slot less, and no smaller ratio then gives that.
        count = tokens.get(row["id"], 0)
        products = {ratio: {candidate_length(ratio, count, exact=exact) for exact in (True, False)} for ratio in grid}
        fitting = [ratio for ratio, lengths in products.items() if row["length"] in lengths]
        if not fitting:
            problem = f"sentence {row['id']!r}: {row['length']} slots are no canvas of EV's grid"
            raise InputError(cell.within(cell.translations_file), problem, REMEDY)
        counts[fitting[0]] += 1
    return counts


def _scores(params: SelectorParams) -> Iterator[tuple[object, ...]]:
    cells = [cell for cell in params.cells if cell.method in (METHOD, *ALTERNATIVES)]
    summary = summarise(cells, [params.metric])
    for row in summary.itertuples(index=False):
        place, numbers = (row.direction, row.testset), {"mean": row.mean, "std": row.std, "runs": row.runs}
        yield from _rows(place, "score", row.method, numbers)


def _tests(params: SelectorParams) -> Iterator[tuple[object, ...]]:
    for key, cells in by_run(params.cells).items():
        run = dict(zip(RUN, key, strict=True))
        for name, methods in groups(list(cells)).items():
            others = [cells[method] for method in methods]
            test = against_mean(cells[METHOD], others, **params.test)
            numbers = asdict(test) | {"bootstrap_seed": params.seed, "systems": len(others)}
            yield from _rows((run["direction"], run["testset"]), "test", name, numbers, run["seed"])
