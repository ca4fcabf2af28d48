"""What the tables have in common: the cells that a table's record names, what the rows of the sets say of each, the
statistics of docs/protocol.md, written again by numpy and scipy alone, and summaries over runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from entropy_valley import files
from entropy_valley.errors import InputError, brief
from entropy_valley.results import SCORES, System
from entropy_valley.verification import sets
from entropy_valley.verification.folder import REMEDY, Folder, NotAtHandError, PValue, Unchecked

Expected = Mapping[str, Any]
"""A row of a table, computed again: its columns."""
Scores = Sequence[float] | np.ndarray
NAN = math.nan
SETTING = ("backbone", "direction", "testset", "order", "steps")
RUN = (*SETTING, "seed")
PLACE = ("direction", "testset")
LENGTHS = ("ratio", "ev", "oracle")
LENGTH_ERROR = "length_mae"  # beside the metrics
FIXED = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}  # baselines, and the columns of the closure over each
INTERVAL = ("ci_low", "ci_high", "p_one_sided", "p_two_sided")  # beside `delta`
COSTS = ("calls", "slots", "passes", "within_steps", "length_mae")

# --- Statistics.

ROUNDING = 1e-12  # sums of floating-point numbers miss 0 by about 1e-17
MOST_DRAWS = 2**31  # of a bootstrap


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else NAN


def deviation(values: Sequence[float]) -> float:
    """The sample standard deviation; a single value has none."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else NAN


def snapped(values: Any) -> Any:
    """0 where only rounding keeps a number from it."""
    return np.where(np.abs(values) < ROUNDING, 0.0, values)


def closure(score: float, ratio: float, oracle: float) -> float:
    """The share of Oracle's lead over a fixed ratio that a system closes; NaN where Oracle does not lead."""
    gap = oracle - ratio
    return (score - ratio) / gap if gap > 1e-9 * max(abs(oracle), abs(ratio)) else NAN


def resampled_means(values: np.ndarray, how: Mapping[str, Any]) -> np.ndarray:
    """The means of sentences that are drawn with replacement; ``values`` has shape (sentences,) or (sentences, k)."""
    resamples, seed, generator = how["resamples"], how["seed"], how["generator"]
    if not isinstance(resamples, int) or not 0 < resamples * len(values) <= MOST_DRAWS:
        problem = f"{brief(resamples)} resamples of {len(values):,} sentences, more than {MOST_DRAWS:,} draws or none"
        raise InputError("the record of a table", problem, "Make the table again with fewer `analysis.resamples`.")
    draw = np.random.RandomState(seed).randint if generator == "random_state" else np.random.default_rng(seed).integers
    count, means = len(values), []
    for start in range(0, resamples, 100):
        places = draw(0, count, size=(min(100, resamples - start), count))
        means.append(values[places].mean(axis=1))
    return snapped(np.concatenate(means))


def paired(first: Scores, second: Scores, how: Mapping[str, Any]) -> dict[str, float]:
    """First minus second system, sentence by sentence: the paired bootstrap, Wilcoxon's test, Cohen's d."""
    lead = snapped(np.asarray(first, dtype=float) - np.asarray(second, dtype=float))
    test = _paired(lead.tobytes(), *(how[key] for key in ("resamples", "seed", "generator", "cohen", "wilcoxon_zeros")))
    return {**test, "sentences": len(lead), "resamples": how["resamples"], "bootstrap_seed": how["seed"]}


@functools.lru_cache(maxsize=4096)  # several tables have the same test
def _paired(leads: bytes, resamples: int, seed: int, generator: str, cohen: str, zeros: str) -> dict[str, float]:
    lead = np.frombuffer(leads)
    means = resampled_means(lead, {"resamples": resamples, "seed": seed, "generator": generator})
    low, high = np.quantile(means, [0.025, 0.975])
    below, above = float(np.mean(means <= 0)), float(np.mean(means >= 0))
    if len(lead) < 2:
        effect = low = high = below = above = NAN
    elif np.ptp(lead) < ROUNDING:  # all the same: no spread, or only that of rounding
        effect = NAN if lead.any() else 0.0
    else:
        effect = float(lead.mean()) / float(np.std(lead, ddof=int(cohen == "sample")))
    wilcoxon = signed_rank(lead, zeros)
    test = {"delta": float(snapped(lead.mean())), "ci_low": float(low), "ci_high": float(high), "p_one_sided": below}
    return {
        **test,
        "p_two_sided": float(np.minimum(1.0, 2 * min(below, above))),
        "wilcoxon_p": PValue(wilcoxon),
        "cohens_d": effect,
    }


def signed_rank(lead: np.ndarray, zeros: str) -> float:
    """Wilcoxon's p; of few sentences that of all their signs at once, which `wilcoxon` goes through one by one."""
    import scipy.stats

    if not lead.any():
        return 1.0
    if len(lead) == 1 or len(lead) > 13:
        return float(scipy.stats.wilcoxon(lead, zero_method=zeros).pvalue)
    ranks = scipy.stats.rankdata(np.abs(lead)) - (zeros == "wilcox") * np.sum(lead == 0)

    def above(leads: np.ndarray, axis: int) -> Any:
        return np.sum(ranks * (leads > 0), axis=axis)

    return float(scipy.stats.permutation_test((lead,), above, permutation_type="samples", n_resamples=2**13).pvalue)


def spearman(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Spearman's ρ; NaN where one of the two is constant, or for fewer than three values."""
    import scipy.stats

    if len(first) < 3 or len({*first}) < 2 or len({*second}) < 2:
        return {"spearman_rho": NAN, "spearman_p": NAN}
    test = scipy.stats.spearmanr(first, second)
    return {"spearman_rho": float(test.statistic), "spearman_p": float(test.pvalue)}


def over_runs(statistic: Callable[..., float], values: Sequence[Any]) -> Any:
    """Over the runs that have a number."""
    unchecked = next((value for value in values if isinstance(value, Unchecked)), None)
    return unchecked or statistic([value for value in values if not math.isnan(value)])


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


def grouped(cells: Iterable[Cell], *keys: str) -> list[tuple[dict[str, Any], list[Cell]]]:
    """The cells that share these fields, behind the fields."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.get(*keys), []).append(cell)
    return [(dict(zip(keys, values, strict=True)), members) for values, members in groups.items()]


def by_method(cells: Iterable[Cell]) -> dict[str, Cell]:
    return {cell.method: cell for cell in cells}


class Table:
    """A table's record: what it says of the table and its cells, and the numbers of the sets that it names."""

    def __init__(self, folder: Folder, place: str, params: Mapping[str, Any] | None = None) -> None:
        self.folder, self.place = folder, place
        self.params = folder.records[place]["facts"] if params is None else params
        self.cells = []
        for one in self.params.get("cells", []):
            if (home := folder.local(place, one["path"])) is None:
                raise NotAtHandError("cells that are not among the results")
            self.cells.append(Cell(**{key: value for key, value in one.items() if key != "path"}, home=home))

    @property
    def metrics(self) -> list[str]:
        """All, the main one first."""
        return [one["name"] for one in self.params["metrics"]]

    @property
    def main(self) -> str:
        """The metric of tests and gaps: that of a COMET, so higher is better."""
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
        scores = {}
        for row in self.folder.segments(cell.home).get(cell.system, []):
            value = row.values.get(self.main)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                place = f"{self.folder.root / cell.home / SCORES}:{row.line}"
                raise InputError(place, f"{self.main} is {value!r}, not a finite number", REMEDY)
            scores[row.values["id"]] = float(value)
        return scores

    def aligned(self, cells: Sequence[Cell], like: Cell) -> np.ndarray:
        """The mean over cells of each sentence's score, in the order of ``like``."""
        ids = self.sentences(like)
        return np.mean([[self.sentences(cell)[name] for name in ids] for cell in cells], axis=0)

    def test(self, first: Cell, others: Sequence[Cell]) -> dict[str, float]:
        return paired(self.aligned([first], first), self.aligned(others, first), self.params)

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    def is_gap(self, oracle: Cell, baseline: Cell) -> bool:
        """Whether Oracle's lead in a run is more than 1.96 standard errors over sentences, in the main metric."""
        lead = self.aligned([oracle], oracle) - self.aligned([baseline], oracle)
        return bool(lead.mean() > 1.96 * deviation(lead) / math.sqrt(len(lead)))

    def rows(self, cell: Cell) -> list[Mapping[str, Any]]:
        return [row.values for row in self.folder.outputs(cell.home).get(cell.system, [])]

    def texts(self, cell: Cell) -> dict[str, str]:
        return self.folder.texts(cell.home, cell.system)

    def errors(self, cell: Cell, oracle: Cell) -> dict[str, int]:
        """The distance of each canvas from Oracle's."""
        true = {row["id"]: row["length"] for row in self.rows(oracle)}
        return {row["id"]: abs(row["length"] - true[row["id"]]) for row in self.rows(cell)}

    def costs(self, cell: Cell) -> dict[str, Any]:
        """Per sentence; ``within_steps`` is a share, ``length_mae`` a mean."""
        sums = sets.totals(self.folder, cell.home, cell.system)
        keys = ("calls", "slots", "passes", "within_steps", "run_tokens")
        per_sentence = {key: sums[key] / sums["sentences"] for key in keys}
        return {"sentences": sums["sentences"], **per_sentence, "length_mae": sums["length_mae"]}

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


# --- Summaries over runs: main, crossbb, matrix, budgets, readings, hero, and parts of others.


def summary(
    table: Table, cells: Sequence[Cell], metrics: Sequence[str], value: Callable[[Cell, str], Any] | None = None
) -> Iterator[Expected]:
    """Means over runs, sample deviations and gap closures; ``value`` gives a cell's number by a metric, else its
    score."""
    for setting, in_setting in grouped(cells, *SETTING):
        methods = {key["method"]: {cell.seed: cell for cell in runs} for key, runs in grouped(in_setting, "method")}
        for metric in metrics:
            values: dict[str, dict[int, Any]] = {
                name: {seed: (value or table.score)(cell, metric) for seed, cell in runs.items()}
                for name, runs in methods.items()
            }
            unchecked = [one for runs in values.values() for one in runs.values() if isinstance(one, Unchecked)]
            for name, scores in values.items():
                row = {**setting, "method": name, "metric": metric}
                if unchecked:
                    closures = [f"{prefix}_{part}" for prefix in FIXED.values() for part in ("mean", "std", "runs")]
                    row["runs"] = len(scores)
                    yield {**row, **dict.fromkeys(("mean", "std", "delta_ratio", *closures, *COSTS), unchecked[0])}
                    continue
                sign, ratio = table.sign(metric), values.get("ratio", {})
                row |= {"mean": mean([*scores.values()]), "std": deviation([*scores.values()]), "runs": len(scores)}
                row["delta_ratio"] = mean([scores[seed] - ratio[seed] for seed in scores]) if ratio else NAN
                for baseline, prefix in FIXED.items():
                    others = [values.get(baseline, {}), values.get("oracle", {})]
                    seeds = [seed for seed in scores if all(seed in runs for runs in others)]
                    if metric != LENGTH_ERROR:  # of a gap in the scores that may be chance no share is given
                        seeds = [one for one in seeds if table.is_gap(methods["oracle"][one], methods[baseline][one])]
                    shares = [closure(*(sign * runs[seed] for runs in (scores, *others))) for seed in seeds]
                    shares = [share for share in shares if not math.isnan(share)]
                    counted = len(shares) if baseline in values or baseline == "ratio" else NAN
                    row |= {f"{prefix}_mean": mean(shares), f"{prefix}_std": deviation(shares)}
                    row[f"{prefix}_runs"] = counted
                costs = [table.costs(cell) for cell in methods[name].values() if cell.steps]  # else there is no canvas
                yield row | ({key: over_runs(mean, [one[key] for one in costs]) for key in COSTS} if costs else {})


def shared_seeds(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of the seeds that all backbones of a direction and test set have; all where they share none."""
    kept = []
    for _, in_place in grouped(cells, *PLACE):
        shared = set.intersection(*({cell.seed for cell in runs} for _, runs in grouped(in_place, "backbone")))
        kept += [cell for cell in in_place if cell.seed in shared or not shared]
    return kept
