"""The cells that a table's record names, what the rows of the sets say of each, and summaries over runs."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from entropy_valley import files
from entropy_valley.results import System
from entropy_valley.verification import sets
from entropy_valley.verification.folder import Folder, NotAtHandError, Unchecked
from entropy_valley.verification.numbers import NAN, closure, deviation, mean, paired

Expected = Mapping[str, Any]
SETTING = ("backbone", "direction", "testset", "order", "steps")
RUN = (*SETTING, "seed")
PLACE = ("direction", "testset")
LENGTHS = ("ratio", "ev", "oracle")
LENGTH_ERROR = "length_mae"  # beside the metrics
FIXED = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}  # baselines, and the columns of the closure over each
TESTED = ("ci_low", "ci_high", "p_one_sided", "p_two_sided", "wilcoxon_p")
PAIRS = (("ev", "ratio"), ("ev", "ratio_eos"), ("oracle", "ev"), ("oracle", "ratio"), ("oracle", "ratio_eos"))


# --- A table's cells, and what the rows of the sets say of each.


@dataclass(frozen=True)
class Cell:
    """A cell as a table's record names it; ``home`` is its set."""

    backbone: str
    direction: str
    testset: str
    seed: int
    method: str
    order: str
    steps: int
    home: str
    pool: str = ""

    @property
    def system(self) -> System:
        return System(self.testset, self.method, self.order, self.steps)

    def get(self, *keys: str) -> tuple[Any, ...]:
        return tuple(getattr(self, key) for key in keys)


class Table:
    """A table's record: what it says of the table and its cells, and the numbers of the sets that it names."""

    def __init__(self, folder: Folder, place: str, params: Mapping[str, Any] | None = None) -> None:
        self.folder, self.place = folder, place
        self.params = folder.records[place]["facts"] if params is None else params
        self.cells = [self._cell(one) for one in self.params.get("cells", [])]

    def _cell(self, one: Mapping[str, Any]) -> Cell:
        if (home := self.folder.local(self.place, one["path"])) is None:
            raise NotAtHandError("cells that are not among the results")
        return Cell(**{key: value for key, value in one.items() if key != "path"}, home=home)

    @property
    def metrics(self) -> list[str]:
        """All, the main one first."""
        return [one["name"] for one in self.params["metrics"]]

    @property
    def main(self) -> str:
        return self.metrics[0]

    def sign(self, metric: str) -> int:
        better = {one["name"]: one["higher_is_better"] for one in self.params["metrics"]}
        return 1 if better.get(metric, metric != LENGTH_ERROR) else -1

    def score(self, cell: Cell, metric: str) -> float | Unchecked:
        """The system score, from texts and rows: never what the header says."""
        return sets.scored(self.folder, cell.home).system(cell.system, metric)

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    def sentences(self, cell: Cell) -> dict[str, float]:
        """The main metric of each sentence, by id."""
        return dict(sets.sentences(self.folder, cell.home, cell.system, self.main))

    def aligned(self, cells: Sequence[Cell], like: Cell) -> np.ndarray:
        """The mean over cells of each sentence's score, in the order of ``like``."""
        ids = self.sentences(like)
        return np.mean([[self.sentences(cell)[name] for name in ids] for cell in cells], axis=0)

    def test(self, first: Cell, others: Sequence[Cell]) -> dict[str, float]:
        return paired(self.aligned([first], first), self.aligned(others, first), self.params)

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    def is_gap(self, oracle: Cell, baseline: Cell) -> bool:
        """Whether Oracle's lead in a run is more than 1.96 standard errors over sentences, in the main metric."""
        lead = self.sign(self.main) * (self.aligned([oracle], oracle) - self.aligned([baseline], oracle))
        return bool(lead.mean() > 1.96 * deviation(lead) / math.sqrt(len(lead)))

    def rows(self, cell: Cell) -> list[Mapping[str, Any]]:
        return [row.values for row in self.folder.outputs(cell.home).get(cell.system, [])]

    def errors(self, cell: Cell, oracle: Cell) -> dict[str, int]:
        """The distance of each canvas from Oracle's."""
        true = {row["id"]: row["length"] for row in self.rows(oracle)}
        return {row["id"]: abs(row["length"] - true[row["id"]]) for row in self.rows(cell)}

    def costs(self, cell: Cell) -> dict[str, Any]:
        """Per sentence; ``within_steps`` is a share, ``length_mae`` a mean."""
        own = sets.totals(self.folder, cell.home, cell.system)
        keys = ("calls", "slots", "passes", "within_steps", "run_tokens")
        per_sentence = {key: own[key] / own["sentences"] for key in keys}
        return {"sentences": own["sentences"], **per_sentence, "length_mae": own["length_mae"]}

    def testset(self, cell: Cell) -> dict[str, dict[str, Any]]:
        return self.folder.testset(cell.home, cell.testset)

    def tokens(self, cell: Cell) -> dict[str, tuple[int, int]]:
        """|x| and |y| of each sentence of a cell's test set."""
        if not (tokens := self.folder.tokens(cell.home, cell.testset)):
            raise NotAtHandError(sets.NO_TOKENIZER.reason)
        return tokens

    def diagnostics(self, cell: Cell, kind: str) -> Any:
        """What the run's diagnostics say of a test set: readings of canvases, which only the model could give again."""
        place = PurePosixPath(cell.home).parent / "diagnostics.json"
        return files.read_json(self.folder.root / place, files.MOST)[kind][cell.testset]


def grouped(cells: Iterable[Cell], *keys: str) -> dict[tuple[Any, ...], list[Cell]]:
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.get(*keys), []).append(cell)
    return groups


def by_method(cells: Iterable[Cell]) -> dict[str, Cell]:
    return {cell.method: cell for cell in cells}


def named(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(keys, values, strict=True))


def over_runs(statistic: Callable[..., float], values: Sequence[Any]) -> Any:
    """Over the runs that have a number."""
    unchecked = next((value for value in values if isinstance(value, Unchecked)), None)
    return unchecked or statistic([value for value in values if not math.isnan(value)])


# --- Summaries over runs: main, crossbb, matrix, budgets, readings, hero, and parts of others.


def summary(
    table: Table, cells: Sequence[Cell], metrics: Sequence[str], value: Callable[..., Any]
) -> Iterator[Expected]:
    """Means over runs, sample deviations and gap closures; ``value`` gives a cell's number by a metric."""
    for setting, of_setting in grouped(cells, *SETTING).items():
        methods = {name[0]: {cell.seed: cell for cell in of} for name, of in grouped(of_setting, "method").items()}
        for metric, (name, runs) in itertools.product(metrics, methods.items()):
            row = {**named(SETTING, setting), "method": name, "metric": metric}
            values = {other: {seed: value(cell, metric) for seed, cell in of.items()} for other, of in methods.items()}
            unchecked = [one for of in values.values() for one in of.values() if isinstance(one, Unchecked)]
            if unchecked:
                closures = [f"{prefix}_{part}" for prefix in FIXED.values() for part in ("mean", "std", "runs")]
                yield {**row, **dict.fromkeys(("mean", "std", "delta_ratio", *closures, *COSTS), unchecked[0])}
                continue
            own, sign, ratio = values[name], table.sign(metric), values.get("ratio", {})
            row |= {"mean": mean([*own.values()]), "std": deviation([*own.values()]), "runs": len(own)}
            row |= {"delta_ratio": mean([own[seed] - ratio[seed] for seed in own]) if ratio else NAN}
            for baseline, prefix in FIXED.items():
                others = [values.get(baseline, {}), values.get("oracle", {})]
                seeds = [seed for seed in own if all(seed in of for of in others)]
                if metric != LENGTH_ERROR:  # of a gap in the scores that may be chance no share is given
                    seeds = [one for one in seeds if table.is_gap(methods["oracle"][one], methods[baseline][one])]
                triples = [[sign * of[seed] for of in (own, *others)] for seed in seeds]
                closed = [share for triple in triples if not math.isnan(share := closure(*triple))]
                counted = len(closed) if baseline in values or baseline == "ratio" else NAN
                row |= {f"{prefix}_mean": mean(closed), f"{prefix}_std": deviation(closed), f"{prefix}_runs": counted}
            yield row | _mean_costs(table, runs.values())


COSTS = ("calls", "slots", "passes", "within_steps", "length_mae")


def _mean_costs(table: Table, cells: Iterable[Cell]) -> dict[str, Any]:
    """Costs a sentence, over runs; an autoregressive system has no canvas."""
    costs = [table.costs(cell) for cell in cells if cell.steps]
    return {key: over_runs(mean, [one[key] for one in costs]) for key in COSTS} if costs else {}


def shared_seeds(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of the seeds that all backbones of a direction and test set have; all where they share none."""
    kept = []
    for of_place in grouped(cells, *PLACE).values():
        shared = set.intersection(*({cell.seed for cell in of} for of in grouped(of_place, "backbone").values()))
        kept += [cell for cell in of_place if cell.seed in shared or not shared]
    return kept
