"""A given adapter instead of training: fetched, checked by its matrices, written in our layout."""

import dataclasses
import shutil
from pathlib import Path

from entropy_valley import files, hub
from entropy_valley.errors import InputError, note
from entropy_valley.model import adapters
from entropy_valley.model.checkpoint import checkpoint_digest, config_arguments, read_origin
from entropy_valley.model.families import find_family
from entropy_valley.model.load import empty_model, fetch_adapter, torch_dtype
from entropy_valley.model.prompt import attention_of
from entropy_valley.settings import JsonObject
from entropy_valley.training.adapter import lora_modules


def adopt(
    spec: JsonObject, backbone: Path, out: Path, work: Path, folder: Path | None = None, agreed: bool = True
) -> None:
    """Write a given adapter to ``out``, with our ``adapter.json``; ``spec`` has the params of the rule
    ``adopt_adapter``.

    ``folder`` holds it. Without one it is fetched into ``work`` from the repository in the params, if it is small or
    the config has ``agreed`` to large downloads. No weights are loaded: this job needs a network, and login nodes have
    little memory. The adapter may adapt other modules than our training would; ``adapter.json`` lists them. Raises
    InputError for an adapter that cannot be read or belongs to another backbone or attention, and if ``out`` holds the
    losses of a training. Of an adapter without ``adapter.json`` the params say which attention it was trained with.
    """
    if (out / adapters.LOSSES).exists():
        raise InputError(out, "holds an adapter trained here", "Give another `results`, or move it.")
    key = f"`released.{spec['backbone']}.{spec['direction']}.{spec['seed']}.folder`"  # names a local copy
    if folder and not folder.is_dir():
        raise InputError(folder, "no such folder", f"Correct {key}.")
    given = spec["source"]
    with files.locked(work):  # two runs do it one after the other
        if folder:
            _take(spec, backbone, out, folder, {})
            return
        source = hub.listing(given["repository"], given["revision"], key)
        part = work / source.repository / source.commit  # another source's partial download is not reused
        fetched = fetch_adapter(source, given["subfolder"], part, key, agreed)
        _take(spec, backbone, out, fetched, given | {"revision": source.commit})
        shutil.rmtree(work)


def _take(spec: JsonObject, backbone: Path, out: Path, folder: Path, source: JsonObject) -> None:
    """Check the adapter in ``folder``, and write it."""
    family, backbone_digest = find_family(spec["family"]), checkpoint_digest(backbone)
    parts = [folder / name for name in adapters.FILES if (folder / name).exists()]
    source = {**source, "digest": files.digest(files.digests(parts))}
    adapters.require_same(folder, backbone_digest, attention_of(spec))
    given = adapters.read_adapter(folder, family)
    model = empty_model(family, config_arguments(backbone, family), torch_dtype("bfloat16"))
    adapted, wanted = {*given.modules}, {*lora_modules(model, family)}
    adapters.attach(model, given, folder)
    differences = {"not_adapted": sorted(wanted - adapted), "also_adapted": sorted(adapted - wanted)}
    for what, modules in differences.items():
        if modules:
            note(f"{what.replace('_', ' ')}: {len(modules)} modules, {modules[0]} …")
    if repository := read_origin(backbone).get("repository"):
        given = dataclasses.replace(given, settings={**given.settings, "base_model_name_or_path": repository})
    facts = {
        "adopted": True,
        "backbone_digest": backbone_digest,
        "seed": spec["seed"],
        "spec": spec,
        "source": source,
        "family": family.name,
        "vocabulary": model.config.vocab_size,
        **differences,
    }
    with files.atomic_folder(out) as new:
        adapters.write_adapter(given, new, facts=facts)
