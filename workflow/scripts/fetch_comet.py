"""Download a metric's COMET checkpoint and the tokenizer of its encoder, unless they are there."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from entropy_valley import errors, files, hub, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository")
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint is, or goes")
    parser.add_argument("--out", type=Path, required=True, help="what it is; named after the metric")
    arguments = parser.parse_args()
    files.make_once(arguments.folder, lambda work: fetch(arguments.repository, arguments.out.stem, work))
    found = files.read_json(arguments.folder / "comet.json")
    if found["repository"] != arguments.repository:
        problem = f"has {found['repository']}, but the config asks for {arguments.repository}"
        raise errors.InputError(arguments.folder, problem, "Move it away, or give the metric another name.")
    files.write_json(arguments.out, found)


def fetch(repository: str, name: str, work: Path) -> None:
    section = "comet" if name == "comet" else f"metrics.{name}"
    key = f"`scoring.{section}.checkpoint` (its .ckpt file)"
    commit = hub.resolve(repository, None, key)
    hub.download(repository, commit, work, ["*.ckpt", "*.yaml", "LICENSE*", "README.md"], key)
    encoder = yaml.safe_load((work / "hparams.yaml").read_text())["pretrained_model"]
    # The checkpoint holds the encoder's weights, but COMET reads its tokenizer and config by name, here first.
    hub.download(encoder, None, work / encoder, ["*.json", "*.model", "vocab.txt"], key)
    files.write_json(work / "comet.json", {"repository": repository, "revision": commit})


if __name__ == "__main__":
    run.script(main)
