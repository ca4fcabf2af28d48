"""Download a released checkpoint unless its folder is there, look at it, and write its manifest."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from entropy_valley import errors, files, hub
from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import find_family


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=json.loads)
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint is, or goes")
    parser.add_argument("--own", action="store_true", help="the folder is the user's: nothing is written to it")
    parser.add_argument("--out", type=Path, required=True, help="its manifest")
    arguments = parser.parse_args()
    spec, folder = arguments.spec, arguments.folder
    key = f"`backbones.{spec['backbone']}.folder`"
    if not folder.is_dir():
        if arguments.own:
            raise errors.InputError(folder, "no such folder", f"Mend {key}.")
        fetch(spec, folder, key)
    elif not arguments.own:
        require_commit(spec["revision"], folder)
    look(spec, folder)
    files.write_json(arguments.out, checkpoint.manifest(folder))


def fetch(spec: dict[str, Any], folder: Path, key: str) -> None:
    """Download into a folder beside; the name is there only when everything is."""
    repository = spec["repository"]
    source = hub.listing(repository, spec["revision"], key)
    copy = Path(Path(repository).name)
    first = f"`hf download {repository} --local-dir {copy}`, point {key} to that folder, and "
    checkpoint.refuse_pickles([file.name for file in source.files], repository, copy, first)
    source = dataclasses.replace(source, licence=spec["licence"], gated=source.gated or spec["gated"])
    work = folder.with_name(f".{folder.name}.part")
    hub.fetch(source, work, hub.CHECKPOINT_FILES, key)
    checkpoint.write_manifest(work, find_family(spec["family"]), repository=repository, revision=source.commit)
    work.rename(folder)


def require_commit(pinned: str | None, folder: Path) -> None:
    """What was fetched once stays, so a config that pins another commit since then must not go unnoticed."""
    fetched = checkpoint.manifest(folder).get("revision")
    if pinned and fetched and pinned != fetched:
        raise errors.InputError(folder, f"holds commit {fetched}, not {pinned}", "Pin that one, or move the folder.")


def look(spec: dict[str, Any], folder: Path) -> None:
    """Raise InputError for what a job on a GPU would else be the first to find."""
    from entropy_valley.backbone import released, weights
    from entropy_valley.backbone.loading import empty_model, torch_dtype
    from entropy_valley.backbone.tokenizer import load_tokenizer

    family = find_family(spec["family"])
    arguments = released.config_arguments(folder, family, spec.get("repository"))
    released.special_ids(folder, family, load_tokenizer(folder, family))
    weights.check(empty_model(family, arguments, torch_dtype("float32")), family, folder)


errors.run(main)
