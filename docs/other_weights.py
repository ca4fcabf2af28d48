"""How far the weights of `ev_fit` travel: a run's test set under weights fitted to development pairs of other runs.

    python docs/other_weights.py    # behind `make findings` and a run of config/tatoeba.yaml, in the same checkout

It reads pairs, adapters and stores of these results, and adds to the stores what it computes: probes of the same five
lengths, texts of canvases that no method had chosen before, and their scores. No weight is fitted to a test set.
Writes docs/numbers/results/weights.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from check_numbers import RESULTS
from keep_tables import commit

from entropy_valley import files, machine
from entropy_valley.experiment.config import load, matrix, params, paths
from entropy_valley.experiment.config.matrix import Cell, CellSet, Run
from entropy_valley.experiment.config.methods import method_settings
from entropy_valley.experiment.config.schema import Experiment
from entropy_valley.experiment.stats.significance import LEVELS, Analysis, bootstrap_means
from entropy_valley.experiment.stats.summary import closure
from entropy_valley.lengths import logit, make_method
from entropy_valley.lengths.ev import CONSTANTS
from entropy_valley.lengths.statistics import LengthStatistics
from entropy_valley.results import System
from entropy_valley.scoring import from_params, metrics
from entropy_valley.scoring.metrics import ScoringJob
from entropy_valley.scoring.sets import read_outputs
from entropy_valley.store import Store
from entropy_valley.translation.fits import Pairs
from entropy_valley.translation.job import Execution, RunModel
from entropy_valley.translation.translations import Translations

FOLDER = RESULTS / "weights"
CONFIGS = {"findings": "grammar-2", "tatoeba": "tatoeba"}  # a config, and the test set of its study ev_fit
FRESH = "tatoeba"  # a config whose development pairs no weight of other runs has seen: they are tested on, too
PAIRS_OF = (10, 25, 50, 100)  # development pairs of the run itself
HOW = Analysis(resamples=10_000, seed=1)  # of the intervals
MOST = 100  # of every other run
BASELINES = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}
COMPARED = ("oracle", *BASELINES, "ev", "ev_line")
Choices = Sequence[logit.Observed]
Weights = Mapping[str, float]


class Work(NamedTuple):
    """A run with its config and test set, and what fits see of its first development pairs, by their number."""

    experiment: Experiment
    run: Run
    testset: str
    execution: Execution
    choices: Mapping[int, Choices]


def works(config: str, testset: str) -> Iterator[Work]:
    """The runs of a config's matrix."""
    experiment = load.load_files([*load.base_files(), f"config/{config}.yaml"])
    for run in matrix.runs(experiment):
        execution = Execution(
            Path(paths.backbone_folder(experiment, run.backbone, run.seed)),
            Path(paths.adapter_folder(experiment, run)),
            Path(experiment.results, "corpus", run.direction),
            Path(run.folder(f"{experiment.results}/store")),
        )
        yield Work(experiment, run, testset, execution, observed(experiment, run, execution))


def observed(experiment: Experiment, run: Run, execution: Execution) -> dict[int, Choices]:
    """What the fit of `ev_fit` sees of a run's first development pairs."""
    train, dev = execution.pairs
    model = RunModel(params.filling(experiment, run), execution)
    with Store(execution.store / "fits") as store:
        line = LengthStatistics.of(Pairs(model.sentences(train), model.runner("probe", store)).statistics(["line"]))
        held_out, seen = Pairs(model.sentences(dev), model.runner("probe", store)), {}
        for count in PAIRS_OF:
            method = make_method("ev_fit", {"pairs": count}, line)
            seen[count] = method.observed(held_out.examples(method))
    return seen


def fit(choices: Choices) -> Weights:
    """The weights that `ev_fit` would have."""
    return make_method("ev_fit", {}).fitted(choices)[1]["weights"]


def joint(runs: Sequence[Work]) -> Choices:
    """What a fit sees of several runs together."""
    return list(itertools.chain.from_iterable(work.choices[MOST] for work in runs))


def weights_of(work: Work, runs: Sequence[Work], elsewhere: Weights | None) -> dict[str, Weights]:
    """The weights that a run is tested with. Those of other runs are of its own seed, so of its own pre-trainings;
    ``elsewhere`` was fitted to Tatoeba's."""
    if work.testset == matrix.DEV:  # its own weights have seen these pairs
        return {"constants": CONSTANTS}
    same = [other for other in runs if other.run.seed == work.run.seed]
    differs = {
        "other_directions": lambda run: run.backbone == work.run.backbone and run.direction != work.run.direction,
        "other_backbones": lambda run: run.backbone != work.run.backbone and run.direction == work.run.direction,
        "neither": lambda run: run.backbone != work.run.backbone and run.direction != work.run.direction,
    }
    weights = {f"own_{count}": fit(choices) for count, choices in work.choices.items()}
    for name, chosen in differs.items():
        if others := [other for other in same if chosen(other.run)]:
            weights[name] = fit(joint(others))
    return weights | {"constants": CONSTANTS, **({"tatoeba": elsewhere} if elsewhere else {})}


def translated(work: Work, weights: Mapping[str, Weights]) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """The main score of each sentence by method, and the canvas error and calls of each method."""
    experiment, run, testset = work.experiment, work.run, work.testset
    order, steps = experiment.tables.order, experiment.tables.steps
    methods = {name: method_settings(experiment, name, run.direction, run.backbone) for name in COMPARED}
    methods |= {name: {"method": "ev_weighed", "weights": dict(one)} for name, one in weights.items()}
    cells = CellSet(run, "weights", tuple(Cell(run, testset, name, order, steps) for name in COMPARED))
    spec = params.translating(experiment, cells) | {
        "cells": [[testset, name, order, steps] for name in methods],
        "methods": methods,
        "fits": {"length_statistics": {"parts": ["line"]}},
    }
    _, dev = work.execution.pairs
    file = dev if testset == matrix.DEV else dev.parent / "test" / f"{testset}.jsonl"
    job = Translations(spec, work.execution, [file])
    with job.model.store:
        rows = job.rows()
        counted = {cell.method: job.entry(cell, of_cell) for cell, of_cell in rows.items()}
    counts = {name: (one["length_mae"], one["calls"] / one["sentences"]) for name, one in counted.items()}
    return scores(work, cells, file, rows), counts


def scores(work: Work, cells: CellSet, file: Path, rows: Mapping[System, Any]) -> pd.DataFrame:
    """The main metric's score of each sentence, a column for each method; through the store of scores."""
    experiment, run = work.experiment, work.run
    spec = json.loads(params.scores(experiment, cells))
    name, metric = next(iter(from_params(spec).items()))  # the main one
    checkpoint = paths.comet_folder(experiment)
    with Store(Path(experiment.results, "store/scoring", run.direction)) as store:
        metrics.prepare(name, metric, ScoringJob(spec["target_language"], checkpoint, store=store))
        return pd.DataFrame(
            {
                cell.method: metric.segment_scores(one.sources, one.hypotheses, one.references)
                for cell, one in ((cell, read_outputs(file, of_cell, cell.label)) for cell, of_cell in rows.items())
            }
        )


def table(config: str, runs: Sequence[Work], elsewhere: Weights | None) -> pd.DataFrame:
    """A row for each kind of weights: the shares of gaps that all runs close, with 95 % limits over sentences and the
    deviation over seeds, canvas errors, and the runs in which its mean score is above EV's."""
    of_run, counts = {}, {}
    for work in runs:
        of_run[work.run], counts[work.run] = translated(work, weights_of(work, runs, elsewhere))
        print(work.run.folder(config), work.testset)
    means = pd.DataFrame({run: scores.mean() for run, scores in of_run.items()}).T
    whole, seeds = means.mean().to_frame().T, means.groupby([run.seed for run in of_run]).mean()
    resampled = _resampled(of_run)
    rows = []
    for name in means.columns.drop(["oracle", *BASELINES]):
        row = {"config": config, "testset": runs[0].testset, "weights": name, "runs": len(of_run)}
        for baseline, prefix in BASELINES.items():
            names = (name, baseline, "oracle")
            limits = np.quantile(closure(*(resampled[one] for one in names)), LEVELS)
            row[prefix] = closure(*(whole[one] for one in names)).item()
            row |= {f"{prefix}_low": limits[0], f"{prefix}_high": limits[1]}
            row[f"{prefix}_std"] = closure(*(seeds[one] for one in names)).std()
        row["mae"], row["calls"] = np.mean([one[name] for one in counts.values()], axis=0)
        rows.append(row | {"leads": int((means[name].round(6) > means["ev"].round(6)).sum())})
    return pd.DataFrame(rows)


def _resampled(of_run: Mapping[Run, pd.DataFrame]) -> pd.DataFrame:
    """The mean scores of each resample of sentences, by method; the sentences of a direction are the same in all its
    runs."""
    by_direction = {
        direction: sum(scores for run, scores in of_run.items() if run.direction == direction)
        / sum(run.direction == direction for run in of_run)
        for direction in dict.fromkeys(run.direction for run in of_run)
    }
    total = sum(bootstrap_means(scores.to_numpy(), HOW) for scores in by_direction.values())
    return pd.DataFrame(total / len(by_direction), columns=next(iter(of_run.values())).columns)


def main() -> None:
    origin = {"commit": commit(), "command": "python docs/other_weights.py", "machine": machine.description()}
    runs = {config: list(works(config, testset)) for config, testset in CONFIGS.items()}
    weights = {config: fit(joint(of_config)) for config, of_config in runs.items()}
    if weights["findings"] != CONSTANTS:
        print(f"the constants of `ev_weighed` are of other pre-trainings; these have {weights['findings']}")
    numbers = [
        table("findings", runs["findings"], weights["tatoeba"]),
        table("tatoeba", runs["tatoeba"], None),
        table(FRESH, [work._replace(testset=matrix.DEV) for work in runs[FRESH]], None),
    ]
    FOLDER.mkdir(parents=True, exist_ok=True)
    pd.concat(numbers).to_csv(FOLDER / "weights.csv", index=False, float_format="%.10g")
    files.write_json(FOLDER / "origin.json", origin | {"weights": weights})


if __name__ == "__main__":
    main()
