"""Download a released checkpoint unless its folder exists, check it, and write its manifest."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from entropy_valley import errors, files, folders, hub, provenance, run
from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import find_family


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--folder", type=Path, required=True, help="the folder of the checkpoint")
    parser.add_argument(
        "--own", action="store_true", help="the folder is the user's: of ours it gets a hidden file of digests"
    )
    parser.add_argument("--out", type=Path, required=True, help="its manifest")
    arguments = parser.parse_args()
    spec, folder = arguments.spec, arguments.folder
    key = f"`backbones.{spec['backbone']}.folder`"
    if not arguments.own:
        folders.make_once(folder, lambda work: fetch(spec, work, key))
        require_source(spec, folder)
    elif not folder.is_dir():
        raise errors.InputError(folder, "no such folder", f"Correct {key}.")
    check(spec, folder)
    manifest = checkpoint.manifest(folder)
    with provenance.made("fetch_backbone", spec, [], [arguments.out], known={folder: manifest["digest"]}):
        files.write_json(arguments.out, manifest)


def fetch(spec: dict[str, Any], work: Path, key: str) -> None:
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
    hub.fetch(source, work, hub.CHECKPOINT_FILES, key)
    checkpoint.write_manifest(work, find_family(spec["family"]), repository=repository, revision=source.commit)


def require_source(spec: dict[str, Any], folder: Path) -> None:
    """Raise InputError if the folder holds another repository or revision than the config names."""
    fetched = checkpoint.facts(folder)
    for fact in ("repository", "revision"):
        if spec[fact] and fetched.get(fact, spec[fact]) != spec[fact]:
            raise errors.InputError(
                folder, f"holds {fact} {fetched[fact]}, not {spec[fact]}", "Name it in the config, or move the folder."
            )


def check(spec: dict[str, Any], folder: Path) -> None:
    """Raise InputError for problems that a GPU job would else be the first to find."""
    from entropy_valley.backbone import released, weights
    from entropy_valley.backbone.loading import empty_model, torch_dtype
    from entropy_valley.backbone.tokenizer import load_tokenizer

    family = find_family(spec["family"])
    arguments = released.config_arguments(folder, family, spec.get("repository"))
    released.special_ids(folder, family, load_tokenizer(folder, family))
    weights.check(empty_model(family, arguments, torch_dtype("float32")), family, folder)


run.script(main)
