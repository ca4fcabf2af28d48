"""Download a released checkpoint unless its folder is there, look at it, and write its manifest."""

import argparse
import json
import sys
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
    checkpoint.config_arguments(folder, find_family(spec["family"]))
    checkpoint.shards(folder)
    files.write_json(arguments.out, checkpoint.manifest(folder))


def fetch(spec: dict[str, Any], folder: Path, key: str) -> None:
    """Download into a folder beside; the name is there only when everything is."""
    commit = hub.resolve(spec["repository"], spec.get("revision"), key)
    print(f"{spec['repository']} at {commit}, licence {spec['licence']}", file=sys.stderr)
    work = folder.with_name(f".{folder.name}.part")
    hub.download(spec["repository"], commit, work, hub.CHECKPOINT_FILES, key)
    checkpoint.write_manifest(work, find_family(spec["family"]), repository=spec["repository"], revision=commit)
    work.rename(folder)


errors.run(main)
