"""Released checkpoints: downloaded, and checked before a GPU job loads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entropy_valley import folders, hub
from entropy_valley.backbone import checkpoint, released, weights
from entropy_valley.backbone.families import find_family
from entropy_valley.backbone.loading import empty_model, torch_dtype
from entropy_valley.backbone.tokenizer import load_tokenizer
from entropy_valley.errors import InputError


def fetch(spec: Mapping[str, Any], folder: Path, own: bool, agreed: bool) -> dict[str, Any]:
    """Download a checkpoint unless its folder exists, check it, and return its manifest.

    ``spec``: the params of the rule ``fetch_backbone``. ``own``: the folder is the user's, which gets a hidden file of
    digests and nothing else. ``agreed``: whether the config has agreed to large downloads. Raises InputError for what
    cannot be downloaded or loaded, and for a folder that holds another repository or revision.
    """
    key = f"`backbones.{spec['backbone']}.folder`"
    if not own:
        folders.make_once(folder, lambda work: _download(spec, work, key, agreed))
        _require_source(spec, folder)
    elif not folder.is_dir():
        raise InputError(folder, "no such folder", f"Correct {key}.")
    _check(spec, folder)
    return checkpoint.manifest(folder)


def _download(spec: Mapping[str, Any], work: Path, key: str, agreed: bool) -> None:
    repository = spec["repository"]
    source = hub.listing(repository, spec["revision"], key)
    first = f"{hub.command(repository, source.commit)}, point {key} to that folder, and "
    checkpoint.refuse_pickles([file.name for file in source.files], repository, Path(Path(repository).name), first)
    source = dataclasses.replace(
        source,
        licence=spec["licence"] or source.licence,
        gated=source.gated or spec["gated"],
        # In patterns, * matches / too; LLaMA-3's `original/` holds the same model again.
        files=tuple(file for file in source.files if "/" not in file.name),
    )
    hub.require_agreement(source, hub.CHECKPOINT_FILES, agreed)
    hub.fetch(source, work, hub.CHECKPOINT_FILES, key)
    checkpoint.write_manifest(work, find_family(spec["family"]), repository=repository, revision=source.commit)


def _require_source(spec: Mapping[str, Any], folder: Path) -> None:
    """Raise InputError if the folder holds another repository or revision than the config names."""
    fetched = checkpoint.facts(folder)
    for fact in ("repository", "revision"):
        if spec[fact] and fetched.get(fact, spec[fact]) != spec[fact]:
            problem = f"holds {fact} {fetched[fact]}, not {spec[fact]}"
            raise InputError(folder, problem, "Name it in the config, or move the folder.")


def _check(spec: Mapping[str, Any], folder: Path) -> None:
    """Raise InputError for problems that a GPU job would else be the first to find."""
    family = find_family(spec["family"])
    arguments = released.config_arguments(folder, family, spec.get("repository"))
    released.special_ids(folder, family, load_tokenizer(folder, family))
    weights.check(empty_model(family, arguments, torch_dtype("float32")), family, folder)
