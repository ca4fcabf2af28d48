"""What the slices of several rules have in common."""

from __future__ import annotations

from typing import Any

from entropy_valley.backbone.families import find_family
from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.schema import Experiment


def prompt(experiment: Experiment, backbone: str, direction: str) -> str:
    """The template of a direction as a backbone gets it: in the chat template where it wants one."""
    section, template = experiment.backbones[backbone], experiment.directions[direction].prompt
    return find_family(section.family).chat.replace("{prompt}", template) if section.chat else template


def shifted(experiment: Experiment, backbone: str) -> bool:
    """Whether slot i is read from row i - 1: as the config says, else as the family was trained."""
    section = experiment.backbones[backbone]
    return find_family(section.family).shifted if section.shifted is None else section.shifted


def model(experiment: Experiment, run: Run) -> dict[str, Any]:
    """Which model a run is of, and how it reads a sentence."""
    section = experiment.backbones[run.backbone]
    return {
        "backbone": run.backbone,
        "family": section.family,
        "bos": section.bos,
        "shifted": shifted(experiment, run.backbone),
        "direction": run.direction,
        "prompt": prompt(experiment, run.backbone, run.direction),
    }


def numerics(experiment: Experiment) -> dict[str, Any]:
    """How the model computes. The usual way to run an adapter goes unsaid: jobs done before there was another stay."""
    settings = experiment.decoding
    return {"precision": settings.precision, **({} if settings.merge_adapter else {"merge_adapter": False})}


def dump(section: Any) -> dict[str, Any]:
    """A section of the config as plain values, without those that are null."""
    return section.model_dump(mode="json", exclude_none=True)
