"""A given adapter instead of training: fetched, checked by its matrices, written in our layout."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files, folders, hub, locks, provenance
from entropy_valley.backbone import adapters, checkpoint
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.loading import empty_model, torch_dtype
from entropy_valley.backbone.peft_format import Adapter
from entropy_valley.backbone.prompt_attention import attention_of
from entropy_valley.backbone.released import config_arguments
from entropy_valley.errors import InputError
from entropy_valley.training import adapter, lora

FILES = (adapters.WEIGHTS, adapters.SETTINGS, adapters.FACTS)


@dataclass(frozen=True)
class Job:
    """One adapter to adopt: the params of the rule ``adopt_adapter`` and its folders.

    ``folder`` holds the given adapter. Without it the adapter is fetched into ``work`` from the repository in the
    params, if it is small or the config has ``agreed`` to large downloads.
    """

    spec: Mapping[str, Any]
    backbone: Path
    out: Path
    work: Path
    folder: Path | None = None
    agreed: bool = True

    @property
    def key(self) -> str:
        """The config key that names a local copy."""
        return f"`released.{self.spec['backbone']}.{self.spec['direction']}.{self.spec['seed']}.folder`"


def adopt(job: Job) -> None:
    """Write the given adapter to ``job.out``, unless it holds this adapter already.

    No weights are loaded: this job needs a network, and login nodes have little memory. The checkpoint's files are read
    only for their digest, once per machine. The matrices show whether the adapter can change the logits at all. It may
    adapt other modules than our training would; ``adapter.json`` lists them. Raises InputError for an adapter that
    cannot be read, belongs to another backbone or attention or fails a check, and if ``job.out`` holds an adapter
    trained here. Of an adapter without ``adapter.json`` the params say which attention it was trained with.
    """
    present = adapters.facts(job.out)
    if present and not present.get("adopted"):
        raise InputError(job.out, "holds an adapter trained here", "Give another `results`, or move it.")
    digest = checkpoint.checkpoint_digest(job.backbone)
    if _is_same(job, present, digest):
        return
    with _given(job) as (folder, source):
        _take(job, folder, source, digest)


def _is_same(job: Job, present: Mapping[str, Any], backbone_digest: str) -> bool:
    """Whether ``out`` holds this adapter. Without a pinned revision the one fetched first stays."""
    same = present.get("spec") == job.spec and present["backbone_digest"] == backbone_digest
    if not same or not provenance.stands(job.out / adapters.FACTS):
        return False
    return job.folder is None or present["source"]["digest"] == _folder_digest(job.folder)


@contextlib.contextmanager
def _given(job: Job) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the given adapter's folder and origin. A download is removed when the block succeeds."""
    if job.folder is None:
        with locks.locked(job.work):
            yield _fetch(job, **job.spec["source"])
            shutil.rmtree(job.work)
    elif job.folder.is_dir():
        provenance.require_whole(job.folder / adapters.FACTS)  # if it was trained here
        yield job.folder, {}
    else:
        raise InputError(job.folder, "no such folder", f"Correct {job.key}.")


def _fetch(
    job: Job, repository: str, revision: str | None, subfolder: str | None
) -> tuple[Path, dict[str, str | None]]:
    source, within = hub.listing(repository, revision, job.key), Path(subfolder or "")
    first = f"{hub.command(repository, source.commit)}, point {job.key} to that folder, and "
    paths = [Path(file.name) for file in source.files]
    names = [path.name for path in paths if path.parent == within]
    adapters.require_weights(names, Path(repository).name / within, first)
    work = job.work / repository / source.commit  # a folder of its own: another source's partial download is not reused
    patterns = [str(within / name) for name in FILES]
    hub.require_agreement(source, patterns, job.agreed)
    hub.fetch(source, work, patterns, job.key)
    return work / within, {"repository": repository, "revision": source.commit, "subfolder": subfolder}


def _take(job: Job, folder: Path, source: Mapping[str, Any], backbone_digest: str) -> None:
    """Check the adapter in ``folder`` and write it with our ``adapter.json``."""
    family = find_family(job.spec["family"])
    model = empty_model(family, config_arguments(job.backbone, family), torch_dtype("bfloat16"))
    given = adapters.fitting_adapter(folder, family, model, backbone_digest, job.backbone, attention_of(job.spec))
    _require_trained(job, folder, given)
    differences = _differences(given, lora.targets(model, family))
    for what, modules in differences.items():
        if modules:
            print(f"{what.replace('_', ' ')}: {len(modules)} modules, {modules[0]} …", file=sys.stderr)
    repository = checkpoint.facts(job.backbone).get("repository")
    with folders.atomic(job.out) as new:
        adapters.write_adapter(dataclasses.replace(given, base=repository or given.base), new)
        facts = {
            "adopted": True,
            "backbone_digest": backbone_digest,
            "seed": job.spec["seed"],
            "spec": job.spec,
            "source": {**source, "digest": _folder_digest(folder)},
            "family": family.name,
            **differences,
            **adapter.summary(given, model),
        }
        files.write_json(new / adapters.FACTS, facts)


def _require_trained(job: Job, folder: Path, given: Adapter) -> None:
    try:
        adapter.check_values(given)
    except adapter.AdapterError as error:
        raise InputError(folder, str(error), f"Give a trained adapter of {job.spec['backbone']}.") from None


def _folder_digest(folder: Path) -> str:
    return files.digest({name: files.file_digest(folder / name) for name in FILES if (folder / name).exists()})


def _differences(given: Adapter, wanted: list[str]) -> dict[str, list[str]]:
    """The modules in which the given adapter differs from our training."""
    return {
        "not_adapted": sorted(set(wanted) - given.pairs.keys()),
        "also_adapted": sorted(given.pairs.keys() - set(wanted)),
    }
