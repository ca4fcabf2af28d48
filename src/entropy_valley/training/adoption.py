"""A given adapter instead of training: fetched, checked by its matrices, written in our layout."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import files, hub
from entropy_valley.errors import InputError
from entropy_valley.model import adapters
from entropy_valley.model.checkpoint import checkpoint_digest, config_arguments, read_origin
from entropy_valley.model.families import find_family
from entropy_valley.model.load import empty_model, fetch_adapter, torch_dtype
from entropy_valley.model.prompt import attention_of
from entropy_valley.settings import JsonObject
from entropy_valley.training.adapter import lora_modules, summary


@dataclass(frozen=True)
class Adoption:
    """One adapter to adopt: the params of the rule ``adopt_adapter`` and its folders.

    ``folder`` holds the given adapter. Without it the adapter is fetched into ``work`` from the repository in the
    params, if it is small or the config has ``agreed`` to large downloads.
    """

    spec: JsonObject
    backbone: Path
    out: Path
    work: Path
    folder: Path | None = None
    agreed: bool = True

    @property
    def key(self) -> str:
        """The config key that names a local copy."""
        return f"`released.{self.spec['backbone']}.{self.spec['direction']}.{self.spec['seed']}.folder`"


def adopt(job: Adoption) -> None:
    """Write the given adapter to ``job.out``, with our ``adapter.json``.

    No weights are loaded: this job needs a network, and login nodes have little memory. The adapter may adapt other
    modules than our training would; ``adapter.json`` lists them. Raises InputError for an adapter that cannot be read
    or belongs to another backbone or attention, and if ``job.out`` holds the losses of a training. Of an adapter
    without ``adapter.json`` the params say which attention it was trained with.
    """
    if (job.out / adapters.LOSSES).exists():
        raise InputError(job.out, "holds an adapter trained here", "Give another `results`, or move it.")
    if job.folder:
        if not job.folder.is_dir():
            raise InputError(job.folder, "no such folder", f"Correct {job.key}.")
        _take(job, job.folder, {})
        return
    given = job.spec["source"]
    with files.locked(job.work):
        source = hub.listing(given["repository"], given["revision"], job.key)
        work = job.work / source.repository / source.commit  # another source's partial download is not reused
        folder = fetch_adapter(source, given["subfolder"], work, job.key, job.agreed)
        _take(job, folder, given | {"revision": source.commit})
        shutil.rmtree(job.work)


def _take(job: Adoption, folder: Path, source: JsonObject) -> None:
    """Check the adapter in ``folder``, and write it."""
    family, backbone_digest = find_family(job.spec["family"]), checkpoint_digest(job.backbone)
    adapters.require_same(folder, backbone_digest, attention_of(job.spec))
    given = adapters.read_adapter(folder, family)
    model = empty_model(family, config_arguments(job.backbone, family), torch_dtype("bfloat16"))
    adapted, wanted = {*given.modules}, {*lora_modules(model, family)}
    adapters.attach(model, given, folder)
    differences = {"not_adapted": sorted(wanted - adapted), "also_adapted": sorted(adapted - wanted)}
    for what, modules in differences.items():
        if modules:
            print(f"{what.replace('_', ' ')}: {len(modules)} modules, {modules[0]} …", file=sys.stderr)
    if repository := read_origin(job.backbone).get("repository"):
        given = dataclasses.replace(given, settings={**given.settings, "base_model_name_or_path": repository})
    present = [folder / name for name in adapters.FILES if (folder / name).exists()]
    facts = {
        "adopted": True,
        "backbone_digest": backbone_digest,
        "seed": job.spec["seed"],
        "spec": job.spec,
        "source": {**source, "digest": files.digest(files.digests(present))},
        "family": family.name,
        **differences,
        **summary(given, model),
    }
    with files.atomic_folder(job.out) as new:
        adapters.write_adapter(given, new, facts=facts)
