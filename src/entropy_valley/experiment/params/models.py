"""What the params of a job say of a run's model, and of its passes; what is usual is left out."""

from __future__ import annotations

from typing import Any

from entropy_valley import revisions
from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.params.corpora import other
from entropy_valley.experiment.schema import BackboneSection, Experiment
from entropy_valley.model.attention import BOTH_WAYS, PREFIX
from entropy_valley.model.families import find_family


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
        **attention(section),
    }


def attention(section: BackboneSection) -> dict[str, Any]:
    """What the rows of a backbone's prompts attend to."""
    return other(attention=(section.attention, BOTH_WAYS))


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
    return engine_passes(experiment, run, revisions.DECODING) | other(prompt_cache=(refresh, 1))


def engine_passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """As :func:`passes`, of the engine's jobs; what is usual is left out, also an LM head's precision that is
    the model's."""
    known, settings = passes(experiment, run, revision), experiment.of(run.backbone).decoding
    if settings.head_precision not in ("backbone", settings.precision):
        known["head_precision"] = settings.head_precision
    return known | other(
        batch_invariant=(settings.batch_invariant, "auto"),
        compile_layers=(settings.compile_layers, False),
        mask_token=(settings.mask_token, "never"),
    )


def passes(experiment: Experiment, run: Run, revision: int | list[int]) -> dict[str, Any]:
    """What every job has that runs a run's model; a merged adapter is left out so that old results stay valid."""
    settings = experiment.decoding
    adapter = other(merge_adapter=(settings.merge_adapter, True))
    model, direction = of(experiment, run), experiment.backbones[run.backbone].decoding_prompt_of
    if direction:
        model["prompt"] = prompt(experiment, run.backbone, direction)
    return {**model, "revision": revision, "precision": settings.precision, **adapter}
