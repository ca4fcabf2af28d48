"""What jobs would download that is not here yet, in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import machine
from entropy_valley.checking import subject
from entropy_valley.checking.subject import RELEASED
from entropy_valley.config import Experiment, paths
from entropy_valley.config.matrix import Run
from entropy_valley.data.sources.huggingface import HuggingFace
from entropy_valley.runs.inventory import Job
from entropy_valley.scoring import comet_checkpoint

ROW = 140  # bytes of a pair in the Parquet files of WMT19: 3.6 GB for 26.0 million of zh-en
SMALL = 1e9  # less than this in all is downloaded without a question
LISTED = 6  # most downloads by name


@dataclass(frozen=True)
class Download:
    """Something on the hub; ``bytes`` is None if its size is unknown. ``kept``: it stays on the disk."""

    name: str
    bytes: float | None
    kept: bool = True

    def __str__(self) -> str:
        size = "size unknown" if self.bytes is None else machine.amount(self.bytes)
        return f"{self.name} ({size}{'' if self.kept else ', not kept'})"


def downloads(experiment: Experiment, jobs: Iterable[Job]) -> list[Download]:
    """What jobs would download, each once."""
    kinds = ((_KINDS[job.rule], job.wildcards) for job in jobs if job.rule in _KINDS)
    return list(dict.fromkeys(one for kind, wildcards in kinds for one in kind(experiment, wildcards)))


def summary(experiment: Experiment, jobs: Iterable[Job]) -> str:
    """All downloads in a line, and how to agree to them if they are large and the config does not."""
    items = downloads(experiment, jobs)
    if not items:
        return "none"
    sizes = [item.bytes for item in items]
    unknown = f" and {sizes.count(None)} of unknown size" * (None in sizes)
    more = f", … ({len(items)} in all)" * (len(items) > LISTED)
    text = f"{machine.amount(sum(filter(None, sizes)))}{unknown}: {', '.join(map(str, items[:LISTED]))}{more}"
    large = None in sizes or sum(filter(None, sizes)) >= SMALL
    ask = ". To agree, add at the end of the command: --config confirm=yes"
    return text + ask * (large and not experiment.confirm)


def _backbone(experiment: Experiment, wildcards: Mapping[str, str]) -> Iterator[Download]:
    name = wildcards["backbone"]
    hub = experiment.backbones[name].hub
    if hub and not subject.is_downloaded(experiment, name):
        size = subject.size(experiment, name)
        yield Download(hub.repository, RELEASED * size.parameters if size else None)


def _comet(experiment: Experiment, wildcards: Mapping[str, str]) -> Iterator[Download]:
    metric = paths.downloaded_comets(experiment)[wildcards["checkpoint"]]
    repository = paths.checkpoints(experiment.scoring)[metric].checkpoint
    if not Path(paths.comet_folder(experiment, metric)).exists():
        yield Download(repository, comet_checkpoint.size(wildcards["checkpoint"]) or None)


def _dataset(experiment: Experiment, wildcards: Mapping[str, str]) -> Iterator[Download]:
    name = wildcards["dataset"]
    if not Path(paths.dataset_folder(experiment, name)).exists():
        yield Download(paths.downloaded_datasets(experiment)[name].dataset, None)


def _corpus(experiment: Experiment, wildcards: Mapping[str, str]) -> Iterator[Download]:
    yield from _stream(experiment, experiment.directions[wildcards["direction"]].train)


def _testset(experiment: Experiment, wildcards: Mapping[str, str]) -> Iterator[Download]:
    yield from _stream(experiment, wildcards["testset"])


def _stream(experiment: Experiment, source: str) -> Iterator[Download]:
    section = experiment.sources[source]
    if isinstance(section, HuggingFace) and not section.folder:
        name = f"{section.dataset} {section.subset} {section.split}"
        yield Download(name, section.rows * ROW if section.rows else None, kept=False)


def _adapter(experiment: Experiment, wildcards: Mapping[str, str]) -> Iterator[Download]:
    run = Run.named(wildcards["direction"], wildcards["backbone"], wildcards["seed"])
    given = paths.released_adapter(experiment, run)
    if given.repository and not given.folder:
        size = subject.size(experiment, wildcards["backbone"])
        yield Download(given.repository, 4 * size.adapter(experiment.training.lora.rank) if size else None)


_KINDS = {
    "fetch_backbone": _backbone,
    "fetch_comet": _comet,
    "fetch_dataset": _dataset,
    "corpus": _corpus,
    "testset": _testset,
    "adopt_adapter": _adapter,
}
