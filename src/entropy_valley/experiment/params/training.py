"""The settings of a training that its adapter depends on."""

from __future__ import annotations

from typing import Any

from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.schema import Experiment
from entropy_valley.model.families import find_family
from entropy_valley.training.settings import Lora, Loss

# Elsewhere in the params; and what only says how a training runs. More processes, and passes of another size, draw
# other dropout masks: the adapter is then another one, but no better, so a finished one stays.
_ELSEWHERE = {"precision"}
_EXECUTION = {"processes", "micro_tokens", "checkpoint_every", "activation_checkpointing", "wandb"}


def training_settings(experiment: Experiment, run: Run) -> dict[str, Any]:
    """What the params of a run's training hold of `training`, with what its direction and then its backbone change."""
    section = experiment.backbones[run.backbone]
    settings = experiment.training_of(run.direction).model_dump(mode="json")
    if run.pool:
        pairs = experiment.directions[run.direction].pools[run.pool]
        settings["limit"] = min(pairs, settings["limit"] or pairs)
    changes = section.training.model_dump(mode="json", exclude={"bos"}, exclude_none=True)
    for part, fields in (("loss", Loss.model_fields), ("lora", Lora.model_fields)):
        settings[part] |= {key: changes.pop(key) for key in [*changes] if key in fields}
    if section.eos_padding is not None:
        settings["loss"] |= {"eos_padding": section.eos_padding, "padding_read": False}
    if settings["loss"]["normaliser"] != "micro_batch" and not settings["loss"]["padding_read"]:
        del settings["loss"]["micro_batch"]
    if find_family(section.family).causal:  # the others are of masks, and what comes later is not read
        settings["loss"] = {
            key: settings["loss"][key] for key in ("normaliser", "micro_batch") if key in settings["loss"]
        }
    return {key: value for key, value in (settings | changes).items() if key not in _ELSEWHERE | _EXECUTION}
