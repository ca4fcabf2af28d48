"""The params of the human evaluation's rules, and the files of its forms."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from entropy_valley import revisions
from entropy_valley.experiment import matrix
from entropy_valley.experiment.schema import Experiment, metrics_of
from entropy_valley.experiment.sets import sets_of


def folder(experiment: Experiment, direction: str) -> str:
    """Where the pack of a direction is."""
    return f"{experiment.results}/human_evaluation/{direction}"


def pack(experiment: Experiment, direction: str) -> dict[str, Any]:
    """What a pack depends on: the two systems, the metric that chooses sentences, how many of each bucket, the seed."""
    settings = experiment.human_evaluation
    cells = matrix.evaluated_cells(experiment, direction)
    return {
        "revision": revisions.HUMAN_EVALUATION,
        "cells": [{**cell.key(), "path": sets_of(experiment).folder(cell)} for cell in cells],
        "metrics": [dataclasses.asdict(metrics_of(experiment.scoring)[0])],
        "sentences": settings.sentences.model_dump(),
        "pack_seed": settings.seed,
    }


def inputs(experiment: Experiment, direction: str) -> list[str]:
    """What a pack is made of: the test set, and the translations and scores of the two systems."""
    cells = matrix.evaluated_cells(experiment, direction)
    homes = dict.fromkeys(sets_of(experiment).home[cell] for cell in cells)
    root = experiment.results
    tests = [f"{root}/corpus/{direction}/test/{cell.testset}.jsonl" for cell in cells[:1]]
    return [*tests, *(path for one in homes for path in one.files(root))]


def ratings(experiment: Experiment) -> dict[str, Any]:
    """What ratings depend on beside the forms: the annotators."""
    return {"revision": revisions.HUMAN_EVALUATION, "annotators": experiment.human_evaluation.annotators}


def simulation(experiment: Experiment) -> dict[str, Any]:
    """What a simulated form depends on."""
    return {"revision": revisions.HUMAN_EVALUATION, "seed": experiment.human_evaluation.seed}


def forms(experiment: Experiment, direction: str) -> list[str]:
    """The filled forms of a direction: the files that are there now, or those of simulated annotators."""
    settings = experiment.human_evaluation
    if settings.simulated:
        place = f"{folder(experiment, direction)}/simulated"
        return [f"{place}/{direction}.{annotator}.csv" for annotator in settings.annotators]
    found = Path(settings.forms).glob(f"{direction}.*")
    return sorted(str(path) for path in found if path.suffix.lower() in (".csv", ".xlsx"))
