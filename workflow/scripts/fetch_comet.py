"""Download a COMET checkpoint and the tokenizer of its encoder."""

import argparse
import sys
from pathlib import Path

import yaml

from entropy_valley import errors, files, hub


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()
    key = "`scoring.comet.checkpoint` (its .ckpt file)"
    commit = hub.resolve(arguments.repository, None, key)
    print(f"{arguments.repository} at {commit}", file=sys.stderr)
    hub.download(arguments.repository, commit, arguments.work, ["*.ckpt", "*.yaml", "LICENSE*", "README.md"], key)
    encoder = yaml.safe_load((arguments.work / "hparams.yaml").read_text())["pretrained_model"]
    # The checkpoint holds the encoder's weights, but COMET reads its tokenizer and config by name.
    hub.download(encoder, None, None, ["*.json", "*.model"], "`$HF_HOME`")
    files.write_json(arguments.work / "comet.json", {"repository": arguments.repository, "revision": commit})
    arguments.work.rename(arguments.out)


errors.run(main)
