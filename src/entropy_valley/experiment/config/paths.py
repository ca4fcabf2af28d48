"""Where things are. A change of these paths changes no number and never triggers re-runs."""

import dataclasses
from typing import Any

from entropy_valley.experiment.config.matrix import Run
from entropy_valley.experiment.config.schema import AdapterSection, Experiment, checkpoints
from entropy_valley.model.checkpoint import MANIFEST
from entropy_valley.scoring.comet_checkpoint import folder_name


def checkpoint_of(experiment: Experiment, backbone: str) -> str:
    """The backbone whose checkpoint it is: itself, or what it is a variant of."""
    return experiment.backbones[backbone].variant_of or backbone


def pretraining_seed(experiment: Experiment, backbone: str, seed: int | None = None) -> int:
    """The seed of the pre-training that a backbone's run of this seed starts from; None: its first run."""
    origin, matrix = checkpoint_of(experiment, backbone), experiment.matrix
    pretraining = experiment.backbones[origin].pretraining
    if pretraining and pretraining.seed is not None:
        return pretraining.seed
    return seed or matrix.seeds_of.get(origin, matrix.seeds)[0]


def adapter_run(experiment: Experiment, run: Run) -> Run:
    """The run whose adapter a run decodes with: itself, or that of the backbone which has its adapters."""
    return dataclasses.replace(run, backbone=experiment.backbones[run.backbone].adapter_of or run.backbone)


def adapter_folder(experiment: Experiment, run: Run) -> str | None:
    """Where the adapter is that a run decodes with; None for a zero-shot backbone."""
    if experiment.backbones[run.backbone].zero_shot:
        return None
    return f"{adapter_run(experiment, run).folder(experiment.results)}/adapter"


def backbone_folder(experiment: Experiment, backbone: str, seed: int | None = None) -> str:
    """Where the checkpoint is, or will be, that a backbone's run of this seed starts from."""
    section = experiment.backbones[backbone]
    if section.is_pretrained_here:
        own = pretraining_seed(experiment, backbone, seed)
        return f"{experiment.results}/backbones/{checkpoint_of(experiment, backbone)}/seed{own}"
    return section.own_folder or f"{experiment.models}/{checkpoint_of(experiment, backbone)}"


def backbone_file(experiment: Experiment, backbone: str, seed: int | None = None) -> str:
    """The file that says which checkpoint a backbone's run of this seed starts from; variants share it."""
    if experiment.backbones[backbone].is_pretrained_here:
        return f"{backbone_folder(experiment, backbone, seed)}/{MANIFEST}"
    return f"{experiment.results}/backbones/{checkpoint_of(experiment, backbone)}.json"


def comet_folder(experiment: Experiment, name: str = "comet") -> str:
    """Where a metric's COMET checkpoint is, or will be: a folder, or the user's own ``.ckpt`` file."""
    section = checkpoints(experiment.scoring)[name]
    if section.on_hub:
        return f"{experiment.models}/{folder_name(section.checkpoint, section.revision)}"
    return section.checkpoint or f"{experiment.results}/comet"


def downloaded_comets(experiment: Experiment) -> dict[str, str]:
    """The first metric that uses a COMET checkpoint of the hub, by the name of the checkpoint's folder."""
    metrics: dict[str, str] = {}
    for name, section in checkpoints(experiment.scoring).items():
        if section.on_hub:
            metrics.setdefault(folder_name(section.checkpoint, section.revision), name)
    return metrics


def downloaded_datasets(experiment: Experiment) -> dict[str, Any]:
    """The first source of each data set that is downloaded from the hub, by the name of its folder."""
    datasets: dict[str, Any] = {}
    for source in experiment.sources.values():
        if source.download:
            datasets.setdefault(source.download.folder, source)
    return datasets


def dataset_folder(experiment: Experiment, name: str) -> str:
    """Where a downloaded data set is, or will be; ``name`` is that of its folder."""
    return f"{experiment.models}/datasets/{name}"


def training_logs(experiment: Experiment, run: Run) -> str:
    """Where a training's TensorBoard files are, and what it measured of itself."""
    return run.folder(f"{experiment.results}/logs/tensorboard")


def released_adapter(experiment: Experiment, run: Run) -> AdapterSection:
    return experiment.released[run.backbone][run.direction][run.seed]
