"""What the params of a job say of a run's model, and of its passes."""

from __future__ import annotations

from typing import Any

from entropy_valley import revisions
from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.schema import Experiment
from entropy_valley.model.families import find_family
from entropy_valley.model.prompt import PREFIX


def of(experiment: Experiment, run: Run) -> dict[str, Any]:
    """Which model a run is of, and how it reads a sentence."""
    section = experiment.backbones[run.backbone]
    return {
        "backbone": run.backbone,
        "family": section.family,
        "bos": section.bos,
        "shifted": shifted(experiment, run.backbone),
        "direction": run.direction,
        "prompt": prompt(experiment, run.backbone, run.direction),
        "attention": section.attention,
    }


def prompt(experiment: Experiment, backbone: str, direction: str) -> str:
    """The template of a direction as a backbone gets it: in the chat template where it wants one."""
    section, template = experiment.backbones[backbone], experiment.directions[direction].prompt
    return find_family(section.family).chat.replace("{prompt}", template) if section.chat else template


def shifted(experiment: Experiment, backbone: str) -> bool:
    """Whether slot i is read from row i - 1: as the config says, else as the family was trained."""
    section = experiment.backbones[backbone]
    return find_family(section.family).shifted if section.shifted is None else section.shifted


def filling(experiment: Experiment, run: Run) -> dict[str, Any]:
    """As :func:`engine_passes`, of jobs that choose or fill canvases. A prompt that sees no canvas needs no cache."""
    sees = experiment.backbones[run.backbone].attention != PREFIX
    refresh = experiment.of(run.backbone).decoding.refresh if sees else 1
    return engine_passes(experiment, run, revisions.DECODING) | {"prompt_cache": refresh}


def engine_passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """As :func:`passes`, of the engine's jobs."""
    settings = experiment.of(run.backbone).decoding
    return passes(experiment, run, revision) | {
        "head_precision": "backbone" if settings.head_precision == settings.precision else settings.head_precision,
        "batch_invariant": settings.batch_invariant,
        "compile_layers": settings.compile_layers,
        "mask_token": settings.mask_token,
    }


def passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """What every job has that runs a run's model."""
    settings = experiment.decoding
    model, direction = of(experiment, run), experiment.backbones[run.backbone].decoding_prompt_of
    if direction:
        model["prompt"] = prompt(experiment, run.backbone, direction)
    return {**model, "revision": revision, "precision": settings.precision, "merge_adapter": settings.merge_adapter}
