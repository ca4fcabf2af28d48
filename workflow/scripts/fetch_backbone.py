"""Download a released checkpoint, and write the digests of its files beside it."""

import argparse
import json
import sys
from pathlib import Path

from entropy_valley import errors, hub
from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import FAMILIES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=json.loads)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()
    spec, work = arguments.spec, arguments.work
    key = f"`backbones.{spec['backbone']}.folder`"
    commit = hub.resolve(spec["repository"], spec.get("revision"), key)
    print(f"{spec['repository']} at {commit}, licence {spec['licence']}", file=sys.stderr)
    hub.download(spec["repository"], commit, work, hub.CHECKPOINT_FILES, key)
    checkpoint.config_arguments(work, FAMILIES[spec["family"]])
    checkpoint.shards(work)
    checkpoint.write_manifest(work, FAMILIES[spec["family"]], repository=spec["repository"], revision=commit)
    work.rename(arguments.out)


errors.run(main)
