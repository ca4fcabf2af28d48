"""A finished adapter in place of a training: fetched, judged as if it were trained here, written in our layout."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files, folders, hub
from entropy_valley.backbone import adapters, checkpoint
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.loading import empty_model, torch_dtype
from entropy_valley.backbone.peft_format import Adapter
from entropy_valley.backbone.released import config_arguments
from entropy_valley.errors import InputError
from entropy_valley.training import adapter, lora

FILES = (adapters.WEIGHTS, adapters.SETTINGS, adapters.CARD)


@dataclass(frozen=True)
class Job:
    """One adapter to take over: the SPEC of ``adopt_adapter.py`` and where things lie.

    ``folder`` holds the given adapter; without one it is fetched to ``work`` from the repository in the spec.
    """

    spec: Mapping[str, Any]
    backbone: Path
    out: Path
    work: Path
    folder: Path | None = None

    @property
    def key(self) -> str:
        """The config key that a local copy is named by."""
        return f"`released.{self.spec['backbone']}.{self.spec['direction']}.{self.spec['seed']}.folder`"


def adopt(job: Job) -> None:
    """Write the given adapter to ``job.out``, whole; nothing where it is there already.

    The backbone's weights are not read: this runs where there is a network, and few login nodes have room for 16 GB.
    What would show in the logits shows in the matrices: an adapter none of whose products can be other than zero. It
    may adapt other modules than our training would: ``adapter.json`` lists which. Raises InputError for an adapter
    that cannot be read, is of another backbone, or does not pass.
    """
    digest = checkpoint.checkpoint_digest(job.backbone)
    if _is_finished(job, digest):
        return
    folder, source = _given(job)
    adapters.adapter_card(folder, digest)
    given, described = _read(job, folder)
    circumstances = {"adopted": True, "backbone_digest": digest, "seed": job.spec["seed"], "spec": job.spec}
    try:
        adapter.check_values(given)
    except adapter.AdapterError as error:
        raise InputError(folder, str(error), f"Give a trained adapter of {job.spec['backbone']}.") from None
    with folders.whole(job.out) as new:
        adapters.write_adapter(given, new)
        files.write_json(new / adapters.CARD, {**circumstances, "source": source, **described})
    if job.folder is None:
        shutil.rmtree(job.work)


def _is_finished(job: Job, backbone_digest: str) -> bool:
    """Whether ``out`` holds this adapter. A newest revision is resolved once: what is there stays."""
    if not (job.out / adapters.CARD).exists():
        return False
    card = files.read_json(job.out / adapters.CARD)
    same = card.get("spec") == job.spec and card.get("backbone_digest") == backbone_digest and card.get("adopted")
    return bool(same) and (job.folder is None or card["source"]["digest"] == _folder_digest(job.folder))


def _given(job: Job) -> tuple[Path, dict[str, Any]]:
    """The folder of the given adapter, and what ``adapter.json`` says of its origin."""
    folder, source = (job.folder, {}) if job.folder else _fetch(job, **job.spec["source"])
    if not folder.is_dir():
        raise InputError(folder, "no such folder", f"Mend {job.key}.")
    return folder, {**source, "digest": _folder_digest(folder)}


def _fetch(
    job: Job, repository: str, revision: str | None = None, subfolder: str | None = None
) -> tuple[Path, dict[str, Any]]:
    source, within = hub.listing(repository, revision, job.key), Path(subfolder or "")
    copy = Path(repository).name
    first = f"`hf download {repository} --local-dir {copy}`, point {job.key} to that folder, and "
    there = [Path(file.name) for file in source.files]
    names = [path.name for path in there if path.parent == within]
    adapters.require_weights(names, copy / within, first)
    hub.fetch(source, job.work, [str(within / name) for name in FILES], job.key)
    return job.work / within, {"repository": repository, "revision": source.commit, "subfolder": subfolder}


def _read(job: Job, folder: Path) -> tuple[Adapter, dict[str, Any]]:
    """The given adapter, found to fit the backbone before weights are read, and what ``adapter.json`` says of it."""
    family = find_family(job.spec["family"])
    model = empty_model(family, config_arguments(job.backbone, family), torch_dtype("bfloat16"))
    given = adapters.read_adapter(folder, family, model)
    differences = _differences(given, lora.targets(model, family))
    repository = checkpoint.manifest(job.backbone).get("repository")
    return (
        dataclasses.replace(given, base=repository or given.base),
        {"family": family.name, **differences, **adapter.summary(given, model)},
    )


def _folder_digest(folder: Path) -> str:
    return files.digest({name: files.file_digest(folder / name) for name in FILES if (folder / name).exists()})


def _differences(given: Adapter, wanted: list[str]) -> dict[str, list[str]]:
    """Where the given adapter differs from what training would adapt, said on the terminal too."""
    differences = {
        "not_adapted": sorted(set(wanted) - given.pairs.keys()),
        "also_adapted": sorted(given.pairs.keys() - set(wanted)),
    }
    for what, names in differences.items():
        if names:
            print(f"{what.replace('_', ' ')}: {len(names)} modules, {names[0]} …", file=sys.stderr)
    return differences
