"""What each rule knows of the config: the slice that its numbers depend on, as one canonical JSON string.

Snakemake re-runs a job when its params change. It compares values without their names and ignores those that are
no builtin type, so a rule gets one string with sorted keys; what changes no number (threads, folders) stays out.
"""

from __future__ import annotations

from typing import Any

from entropy_valley import revisions
from entropy_valley.config import Experiment
from entropy_valley.files import canonical
from entropy_valley.matrix import Cell, Run


class Unrecorded:
    """A param that changes how a job runs and no number: a folder, a device, how often to save.

    It is no builtin type, so Snakemake does not compare it: a checkpoint that has only moved must not cost hundreds
    of GPU-hours. The same text within ``shell:`` would be compared, as code.
    """

    def __init__(self, value: object) -> None:
        self.value = value

    def __str__(self) -> str:
        return str(self.value)


def corpus(experiment: Experiment, direction: str) -> str:
    settings = experiment.corpus
    languages = direction.split("-")
    return canonical(
        {
            "direction": direction,
            "revision": revisions.CORPUS,
            "seed": settings.seed,
            "source": _dump(experiment.sources[experiment.directions[direction].train]),
            "train": settings.train,
            "dev": settings.dev,
            "filters": {code: _dump(settings.filters[code]) for code in languages},
        }
    )


def testset(experiment: Experiment, direction: str, name: str) -> str:
    settings = experiment.corpus
    return canonical(
        {
            "direction": direction,
            "revision": revisions.CORPUS,
            "seed": settings.seed,
            "source": _dump(experiment.sources[name]),
            "limit": settings.test_limit,
        }
    )


def pretraining(experiment: Experiment, backbone: str) -> str:
    section = experiment.backbones[backbone]
    settings = section.pretraining.model_dump(mode="json", exclude={"directions", "seed"})
    return canonical(
        {
            "revision": revisions.PRETRAINING,
            "family": section.family,
            "bos": section.bos,
            "seed": section.pretraining.seed,
            "pretraining": settings,
            "prompts": {
                direction: experiment.directions[direction].prompt
                for direction in pretraining_directions(experiment, backbone)
            },
        }
    )


def pretraining_directions(experiment: Experiment, backbone: str) -> list[str]:
    """The directions whose corpora a backbone is pre-trained on."""
    return experiment.backbones[backbone].pretraining.directions or experiment.matrix.directions


def backbone_folder(experiment: Experiment, backbone: str) -> str:
    """Where a backbone's checkpoint is, or will be."""
    section = experiment.backbones[backbone]
    made = f"{experiment.results}/backbones" if section.pretraining else experiment.models
    return section.folder or f"{made}/{backbone}"


def comet_folder(experiment: Experiment) -> str:
    """Where the COMET checkpoint is, or will be: a folder, or the user's own ``.ckpt`` file."""
    if is_local_comet(experiment):
        return experiment.scoring.comet.checkpoint
    return f"{experiment.results if experiment.scoring.comet.training else experiment.models}/comet"


def is_local_comet(experiment: Experiment) -> bool:
    """Whether the COMET checkpoint is a file of the user's own."""
    return (experiment.scoring.comet.checkpoint or "").endswith(".ckpt")


def hub(experiment: Experiment, backbone: str) -> str:
    section = experiment.backbones[backbone]
    return canonical({"backbone": backbone, "family": section.family, **(_dump(section.hub) if section.hub else {})})


def training(experiment: Experiment, run: Run) -> str:
    settings = experiment.training.model_dump(mode="json", exclude={"processes", "precision", "checkpoint_every"})
    return canonical(
        {
            **_model(experiment, run),
            "revision": revisions.TRAINING,
            "seed": run.seed,
            "precision": experiment.training.precision,
            "processes": experiment.training.processes,
            "training": settings,
        }
    )


def canvas(experiment: Experiment, run: Run, method: str) -> str:
    return canonical(
        {
            **_model(experiment, run),
            "revision": revisions.DECODING,
            "precision": experiment.decoding.precision,
            "method": method,
            "selector": selector_settings(experiment, method, run.direction),
        }
    )


def selector_settings(experiment: Experiment, method: str, direction: str) -> dict[str, Any]:
    """A method's own block, with what it says by direction narrowed to this one."""
    block = getattr(experiment.length_methods, method)
    return {
        key: value[direction] if isinstance(value, dict) and direction in value else value
        for key, value in _dump(block).items()
    }


def decoding(experiment: Experiment, run: Run, order: str, steps: int) -> str:
    settings = experiment.decoding
    return canonical(
        {
            **_model(experiment, run),
            "revision": revisions.DECODING,
            "precision": settings.precision,
            "schedule": settings.schedule,
            "order": order,
            "steps": steps,
        }
    )


def scoring(experiment: Experiment, direction: str) -> str:
    comet = experiment.scoring.comet
    return canonical(
        {
            "direction": direction,
            "target_language": direction.split("-")[1],
            "revision": revisions.SCORING,
            "label": comet.label,
            "comet": {"checkpoint": comet.checkpoint, "batch_size": comet.batch_size},
        }
    )


def comet_training(experiment: Experiment) -> str:
    return canonical({"revision": revisions.SCORING, **_dump(experiment.scoring.comet.training)})


def comparison(experiment: Experiment, cells: list[Cell]) -> str:
    """For tables, figures and tests: the cells with their files, and how to name everything."""
    matrix = experiment.matrix
    return canonical(
        {
            "revision": revisions.REPORTING,
            "metric_name": experiment.scoring.comet.label,
            "resamples": experiment.analysis.resamples,
            "seed": experiment.analysis.seed,
            "cells": [{**cell.key(), "path": cell.scores(experiment.results)} for cell in cells],
            "labels": {
                "backbones": {name: experiment.backbones[name].label for name in matrix.backbones},
                "directions": {name: direction_label(name) for name in matrix.directions},
            },
            "ratios": {
                direction: selector_settings(experiment, "ratio", direction)["ratios"]
                for direction in matrix.directions
            }
            if "ratio" in matrix.methods
            else {},
        }
    )


def direction_label(direction: str) -> str:
    """``en-zh`` as tables print it: En→Zh."""
    return "→".join(code.capitalize() for code in direction.split("-"))


def _model(experiment: Experiment, run: Run) -> dict[str, Any]:
    section = experiment.backbones[run.backbone]
    return {
        "backbone": run.backbone,
        "family": section.family,
        "bos": section.bos,
        "direction": run.direction,
        "prompt": experiment.directions[run.direction].prompt,
    }


def _dump(model: Any) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)
