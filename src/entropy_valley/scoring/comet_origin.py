"""Where downloaded COMET checkpoints come from: pinned commits, and what a folder says of its origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from entropy_valley import digest_cache, files, folders
from entropy_valley.errors import InputError
from entropy_valley.scoring import comet_checkpoint
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT

MANIFEST = "comet.json"
_ENCODER = "c23d21b0620b635a76227c604d44e43a9f0ee389"
PINNED = {  # the commit of each repository that the config may leave out
    "Unbabel/wmt22-comet-da": "2760a223ac957f30acfb18c8aa649b01cf1d75f2",
    "FacebookAI/xlm-roberta-large": _ENCODER,
    "xlm-roberta-large": _ENCODER,  # its name before, which COMET's files have
}
_BYTES = {"Unbabel/wmt22-comet-da": 2_330_000_000}  # of a download, where it is known
CHECKPOINT_FILES = ["*.ckpt", "*.yaml", "LICENSE*", "README.md"]
ENCODER_FILES = ("*.json", "*.model", "vocab.txt")


def pinned(repository: str, revision: str | None = None) -> str | None:
    """The commit to use: ``revision`` if the config has one, else ours; None: the newest, written to the results."""
    return revision or PINNED.get(repository)


def folder_name(repository: str, revision: str | None = None) -> str:
    """The name of a checkpoint's folder: another checkpoint, or another commit of it, is in another folder."""
    commit = pinned(repository, revision)
    return repository.replace("/", "--") + (f"@{commit[:8]}" if commit else "")


def size(name: str) -> int:
    """The bytes of the download into a folder with the :func:`folder_name` ``name``; 0 if they are not known."""
    return next((size for repository, size in _BYTES.items() if folder_name(repository) == name), 0)


def fetched(repository: str, revision: str | None, folder: Path, metric: str, agreed: bool) -> dict[str, Any]:
    """Download a metric's checkpoint and its encoder's tokenizer unless ``folder`` exists; what the folder is.

    ``agreed``: whether the config has agreed to large downloads.
    """
    section = metric if metric == "comet" else f"metrics.{metric}"
    key = f"`scoring.{section}.checkpoint` (its .ckpt file)"
    folders.make_once(folder, lambda work: _fetch(repository, revision, key, work, agreed))
    check(folder, repository, revision)
    return files.read_json(folder / MANIFEST)


def _fetch(repository: str, revision: str | None, key: str, work: Path, agreed: bool) -> None:
    from entropy_valley import hub  # only a download takes huggingface_hub, which loads slowly

    source = hub.listing(repository, pinned(repository, revision), key)
    hub.require_agreement(source, CHECKPOINT_FILES, agreed)
    hub.fetch(source, work, CHECKPOINT_FILES, key)
    # The checkpoint holds the encoder's weights, but COMET reads its tokenizer and config by name, here first.
    encoder = comet_checkpoint.encoder(work)
    commit = hub.resolve(encoder, pinned(encoder), key)
    hub.download(encoder, commit, work / encoder, list(ENCODER_FILES), key)
    origin = {"repository": repository, "revision": source.commit, "encoder": encoder, "encoder_revision": commit}
    files.write_json(work / MANIFEST, {**origin, **digests(work, encoder)})


def digests(folder: Path, encoder: str) -> dict[str, str]:
    """Digests of a downloaded checkpoint and of its encoder's tokenizer and config; computed once a machine."""
    paths = sorted(path for pattern in ENCODER_FILES for path in (folder / encoder).glob(pattern))
    read = digest_cache.remembered(paths, lambda: {path.name: files.file_digest(path) for path in paths})
    return {"digest": digest_cache.remembered_digest(folder / CHECKPOINT), "encoder_digest": files.digest(read)}


def check(folder: Path, repository: str, revision: str | None) -> None:
    """Raise InputError unless a folder with a manifest holds the checkpoint ``repository``, as it was downloaded.

    A folder without a manifest is the user's own.
    """
    if not (folder / MANIFEST).is_file():
        return
    found = files.read_json(folder / MANIFEST)
    _require_origin(folder, found, repository, revision)
    now = digests(folder, found["encoder"])
    for name, of in {"digest": "the checkpoint", "encoder_digest": "its encoder's files"}.items():
        if found[name] != now[name]:
            problem = f"{of} changed since the download: digest {now[name][:12]}, not {found[name][:12]}"
            raise InputError(folder, problem, "Remove the folder and its JSON file in `checkpoints`, and run again.")


def _require_origin(folder: Path, found: dict[str, Any], repository: str, revision: str | None) -> None:
    """Raise InputError unless the manifest ``found`` names the repository, and the commit if one is asked for."""
    commit = pinned(repository, revision)
    if found.get("repository") != repository:
        problem = (
            f"holds {found.get('repository', 'a checkpoint that was trained')}, but the config asks for {repository}"
        )
        raise InputError(folder, problem, "Name it in the config, or move the folder away and run again.")
    if commit and found.get("revision", commit) != commit:
        problem = f"holds commit {found['revision']} of {repository}, but {commit} is asked for"
        raise InputError(folder, problem, "Name it as `revision` in the config, or move the folder away and run again.")
