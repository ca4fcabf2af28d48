"""Where things are. A change of these paths changes no number and never triggers re-runs."""

from __future__ import annotations

from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.schema import Adapter, Experiment
from entropy_valley.experiment.scoring import checkpoints


class Unrecorded:
    """A param that changes how a job runs and no number: a folder, a device, how often to save.

    It is no builtin type, so Snakemake does not compare it: a checkpoint that has only moved must not cost hundreds
    of GPU-hours. The same text within ``shell:`` would be compared, as code.
    """

    def __init__(self, value: object) -> None:
        self.value = value

    def __str__(self) -> str:
        return str(self.value)


def checkpoint_of(experiment: Experiment, backbone: str) -> str:
    """The backbone whose checkpoint it is: itself, or what it is a variant of."""
    return experiment.backbones[backbone].variant_of or backbone


def backbone_folder(experiment: Experiment, backbone: str) -> str:
    """Where a backbone's checkpoint is, or will be."""
    section = experiment.backbones[backbone]
    made = f"{experiment.results}/backbones" if section.pretraining else experiment.models
    return section.folder or f"{made}/{checkpoint_of(experiment, backbone)}"


def comet_folder(experiment: Experiment, name: str = "comet") -> str:
    """Where a metric's COMET checkpoint is, or will be: a folder, or the user's own ``.ckpt`` file."""
    if is_local_comet(experiment, name):
        return checkpoints(experiment.scoring)[name].checkpoint
    made_here = name == "comet" and experiment.scoring.comet.training
    return f"{experiment.results if made_here else experiment.models}/{name}"


def is_local_comet(experiment: Experiment, name: str = "comet") -> bool:
    """Whether a metric's COMET checkpoint is a file of the user's own."""
    return (checkpoints(experiment.scoring)[name].checkpoint or "").endswith(".ckpt")


def released_adapter(experiment: Experiment, run: Run) -> Adapter:
    return experiment.released[run.backbone][run.direction][run.seed]
