"""What jobs would download that does not exist yet, and what they would read of the user's own that does not exist."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from entropy_valley import machine
from entropy_valley.experiment.checking import subject
from entropy_valley.experiment.checking.size import RELEASED
from entropy_valley.experiment.config import Experiment, params, paths
from entropy_valley.experiment.config.schema import checkpoints
from entropy_valley.experiment.runs.jobs import Job
from entropy_valley.hub import CONFIRM, SMALL
from entropy_valley.scoring import comet_checkpoint

ROW = 140  # bytes of a pair in the Parquet files of WMT19: 3.6 GB for 26.0 million of zh-en


class Download(NamedTuple):
    """Something on the hub; ``bytes`` is None if its size is unknown."""

    name: str
    bytes: float | None

    def __str__(self) -> str:
        size = "size unknown" if self.bytes is None else machine.amount(self.bytes)
        return f"{self.name} ({size})"


def downloads(experiment: Experiment, jobs: Iterable[Job]) -> list[Download]:
    """What jobs would download, each once."""
    return list(dict.fromkeys(one for job in jobs for one in _downloads(experiment, job.rule, job.wildcards)))


def _downloads(experiment: Experiment, rule: str, wildcards: Mapping[str, str]) -> Iterator[Download]:
    match rule:
        case "fetch_backbone":
            name = wildcards["backbone"]
            section = experiment.backbones[name]
            if section.hub and not section.own_folder and not Path(paths.backbone_folder(experiment, name)).is_dir():
                size = subject.size(experiment, name)
                yield Download(section.hub.repository, RELEASED * size.parameters if size else None)
        case "fetch_comet":
            metric = paths.downloaded_comets(experiment)[wildcards["checkpoint"]]
            if not Path(paths.comet_folder(experiment, metric)).exists():
                repository = checkpoints(experiment.scoring)[metric].checkpoint
                yield Download(repository, comet_checkpoint.size(wildcards["checkpoint"]) or None)
        case "fetch_dataset":
            name = wildcards["dataset"]
            if not Path(paths.dataset_folder(experiment, name)).exists():
                source = paths.downloaded_datasets(experiment)[name]
                yield Download(str(source.download), source.total * ROW if source.total else None)
        case "adopt_adapter":
            run = params.run_of(wildcards)
            given = paths.released_adapter(experiment, run)
            if given.repository:
                size, rank = subject.size(experiment, run.backbone), experiment.training.lora.rank
                yield Download(given.repository, RELEASED * size.adapter(rank) if size else None)


def downloads_line(experiment: Experiment, jobs: Iterable[Job]) -> str:
    """All downloads in a line, where they go, and how to agree to them if they are large and the config does not."""
    items = downloads(experiment, jobs)
    if not items:
        return "none"
    sizes = [item.bytes for item in items]
    unknown = f" and {sizes.count(None)} of unknown size" * (None in sizes)
    folder, total = Path(experiment.models).absolute(), sum(filter(None, sizes))
    space = machine.free(folder)
    place = f" into {folder} ({machine.amount(space)} free)"
    text = f"{machine.amount(total)}{unknown}{place}: {', '.join(map(str, items))}"
    large = None in sizes or total >= SMALL
    ask = f". To agree, add at the end of the command: {CONFIRM}"
    return text + ask * (large and not experiment.confirm)


def missing(experiment: Experiment, jobs: Iterable[Job]) -> list[str]:
    """The user's own files and folders that jobs read and that are not there: each once, as the config names it."""
    named = (path for job in jobs for path in _own_files(experiment, job.rule, job.wildcards))
    return [path for path in dict.fromkeys(named) if not Path(path).exists()]


def _own_files(experiment: Experiment, rule: str, wildcards: Mapping[str, str]) -> Iterable[str]:
    match rule:
        case "corpus":
            direction = wildcards["direction"]
            return experiment.sources[experiment.directions[direction].train].own_files(direction, "train", "dev")
        case "testset":
            return experiment.sources[wildcards["testset"]].own_files(wildcards["direction"], "test")
        case "fetch_backbone":
            return filter(None, [experiment.backbones[wildcards["backbone"]].own_folder])
        case "adopt_adapter":
            return filter(None, [paths.released_adapter(experiment, params.run_of(wildcards)).folder])
        case "score":
            comets = checkpoints(experiment.scoring).values()
            return [one.checkpoint for one in comets if one.checkpoint and not one.on_hub]
    return ()
