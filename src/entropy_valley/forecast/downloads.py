"""What jobs would download that is not there yet, in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import limits
from entropy_valley.checking import subject
from entropy_valley.checking.sizes import RELEASED
from entropy_valley.corpus.sources.huggingface import HuggingFace
from entropy_valley.errors import InputError
from entropy_valley.experiment import Experiment, paths
from entropy_valley.experiment.matrix import Run
from entropy_valley.scoring import comet_origin

ROW = 140  # bytes of a pair in the Parquet files of WMT19: 3.6 GB for 26.0 million of zh-en
SMALL = 1e9  # what is less in all is downloaded without a question


@dataclass(frozen=True)
class Download:
    """Something on the hub; ``bytes`` is None if its size is not known. ``kept``: it stays on the disk."""

    name: str
    bytes: float | None
    kept: bool = True

    def __str__(self) -> str:
        return f"{self.name} ({gigabytes(self.bytes)}{'' if self.kept else ', not kept'})"


def gigabytes(count: float | None) -> str:
    """A number of bytes in print."""
    return "size not known" if count is None else limits.amount(count)


def downloads(experiment: Experiment, jobs: Iterable[tuple[str, Mapping[str, str]]]) -> list[Download]:
    """What jobs, by their rules and wildcards, would download, each once."""
    found = (one for rule, of in jobs for one in _KINDS.get(rule, _nothing)(experiment, of))
    return list(dict.fromkeys(found))


def total(found: Iterable[Download]) -> str:
    """All downloads in print."""
    sizes = [one.bytes for one in found]
    unknown = sizes.count(None)
    return gigabytes(sum(filter(None, sizes))) + f" and {unknown} of unknown size" * bool(unknown)


def require_agreement(experiment: Experiment, found: Sequence[Download]) -> None:
    """Raise InputError for downloads that are large, or of unknown size, unless the config agrees to them."""
    sizes = [one.bytes for one in found]
    if experiment.confirm or (None not in sizes and sum(sizes) < SMALL):
        return
    raise InputError(
        "downloads",
        f"this run would download {total(found)} that is not here: {', '.join(map(str, found))}",
        "To agree, add at the end of the command: --config confirm=yes. If you did not mean these, look at the first "
        "lines of the run: which config files are they, and is one missing?",
    )


def _nothing(experiment: Experiment, of: Mapping[str, str]) -> Iterator[Download]:
    return iter(())


def _backbone(experiment: Experiment, of: Mapping[str, str]) -> Iterator[Download]:
    name = of["backbone"]
    hub = experiment.backbones[name].hub
    if hub and not subject.is_there(experiment, name):
        size = subject.size(experiment, name)
        yield Download(hub.repository, RELEASED * size.parameters if size else None)


def _comet(experiment: Experiment, of: Mapping[str, str]) -> Iterator[Download]:
    metric = paths.downloaded_comets(experiment)[of["checkpoint"]]
    repository = paths.checkpoints(experiment.scoring)[metric].checkpoint
    if not Path(paths.comet_folder(experiment, metric)).exists():
        yield Download(repository, comet_origin.size(of["checkpoint"]) or None)


def _dataset(experiment: Experiment, of: Mapping[str, str]) -> Iterator[Download]:
    name = of["dataset"]
    if not Path(paths.dataset_folder(experiment, name)).exists():
        yield Download(paths.downloaded_datasets(experiment)[name].dataset, None)


def _corpus(experiment: Experiment, of: Mapping[str, str]) -> Iterator[Download]:
    yield from _stream(experiment, experiment.directions[of["direction"]].train)


def _testset(experiment: Experiment, of: Mapping[str, str]) -> Iterator[Download]:
    yield from _stream(experiment, of["testset"])


def _stream(experiment: Experiment, source: str) -> Iterator[Download]:
    section = experiment.sources[source]
    if isinstance(section, HuggingFace) and not section.folder:
        name = f"{section.dataset} {section.subset} {section.split}"
        yield Download(name, section.rows * ROW if section.rows else None, kept=False)


def _adapter(experiment: Experiment, of: Mapping[str, str]) -> Iterator[Download]:
    given = paths.released_adapter(experiment, Run.named(of["direction"], of["backbone"], of["seed"]))
    if given.repository and not given.folder:
        size = subject.size(experiment, of["backbone"])
        yield Download(given.repository, 4 * size.adapter(experiment.training.lora.rank) if size else None)


_KINDS = {
    "fetch_backbone": _backbone,
    "fetch_comet": _comet,
    "fetch_dataset": _dataset,
    "corpus": _corpus,
    "testset": _testset,
    "adopt_adapter": _adapter,
}
