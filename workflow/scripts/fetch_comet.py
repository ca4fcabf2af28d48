"""Download a COMET checkpoint and the tokenizer of its encoder, unless they are there."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, folders, hub, locks, provenance, run
from entropy_valley.scoring import comet_checkpoint, comet_origin
from entropy_valley.scoring.comet_origin import ENCODER_FILES, MANIFEST


def main() -> None:
    options = _options()
    repository, folder = options.repository, options.folder
    key = f"`scoring.{options.section}.checkpoint` (its .ckpt file)"
    take_over(options.former, folder, repository, options.revision)
    folders.make_once(folder, lambda work: fetch(repository, options.revision, key, work))
    found = files.read_json(folder / MANIFEST)
    comet_origin.require_origin(folder, found, repository, options.revision)
    provenance.require_same_commit(options.out, found)
    comet_origin.check(folder, repository, options.revision)
    asked = {"repository": repository, "revision": options.revision}
    with provenance.made("fetch_comet", asked, [], [options.out]):
        files.write_json(options.out, found)


def take_over(former: Path | None, folder: Path, repository: str, revision: str | None) -> None:
    """Move the folder in which earlier versions kept the checkpoint of a metric, if it holds what is asked for."""
    if former is None or folder.is_dir() or not (former / MANIFEST).is_file():
        return
    found, commit = files.read_json(former / MANIFEST), comet_origin.pinned(repository, revision)
    if found.get("repository") != repository or commit not in (None, found.get("revision")):
        return
    with locks.locked(folder):
        if not folder.is_dir():
            write_manifest(former, repository, found["revision"], None)
            former.rename(folder)


def fetch(repository: str, revision: str | None, key: str, work: Path) -> None:
    commit = hub.resolve(repository, comet_origin.pinned(repository, revision), key)
    hub.download(repository, commit, work, ["*.ckpt", "*.yaml", "LICENSE*", "README.md"], key)
    # The checkpoint holds the encoder's weights, but COMET reads its tokenizer and config by name, here first.
    encoder = encoder_of(work)
    encoder_commit = hub.resolve(encoder, comet_origin.pinned(encoder), key)
    hub.download(encoder, encoder_commit, work / encoder, list(ENCODER_FILES), key)
    write_manifest(work, repository, commit, encoder_commit)


def encoder_of(folder: Path) -> str:
    return comet_checkpoint.encoder(folder)


def write_manifest(folder: Path, repository: str, commit: str, encoder_commit: str | None) -> None:
    encoder = encoder_of(folder)
    origin = {"repository": repository, "revision": commit, "encoder": encoder, "encoder_revision": encoder_commit}
    files.write_json(folder / MANIFEST, {**origin, **comet_origin.digests(folder, encoder)})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository")
    parser.add_argument("--revision", help="a commit; without it the pinned one, else the newest")
    parser.add_argument("--section", default="comet", help="where the config asks for it, below `scoring`")
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint is, or goes")
    parser.add_argument("--former", type=Path, help="where earlier versions had it")
    parser.add_argument("--out", type=Path, required=True, help="output: what it is")
    return parser.parse_args()


if __name__ == "__main__":
    run.script(main)
