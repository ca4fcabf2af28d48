"""Data sets of the Hugging Face hub as folders: downloaded once, of one commit, with the digest of every file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from entropy_valley import files
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley import hub

MANIFEST = "dataset.json"
PATTERNS = ["*.jsonl", "LICENSE*", "README.md"]
REMEDY = "Remove the folder and its JSON file in `datasets`, and run again."


class HubReading(NamedTuple):
    """How data sets are read from the hub. ``commits`` is the folder that keeps which commit was the newest when a data
    set was first read; ``agreed``: whether the config has agreed to large downloads."""

    commits: Path | None = None
    agreed: bool = True


_BY_DEFAULT = HubReading()
_reading: ContextVar[HubReading] = ContextVar("reading", default=_BY_DEFAULT)


@contextlib.contextmanager
def reading(commits: str | Path | None, agreed: bool) -> Iterator[None]:
    """Read data sets like this while the block runs, see :class:`HubReading`."""
    token = _reading.set(HubReading(commits and Path(commits), agreed))
    try:
        yield
    finally:
        _reading.reset(token)


def published(repository: str, revision: str | None, key: str) -> hub.Listing:
    """A commit of a data set; without a revision the newest one, or the one that is kept: see :class:`HubReading`.

    So all corpora of one folder of results are of one commit, whatever is published while they are made.
    """
    from entropy_valley import hub  # only reading from the hub takes huggingface_hub, which loads slowly

    if revision or (folder := _reading.get().commits) is None:
        return hub.listing(repository, revision, key, "dataset")
    place = folder / f"{folder_name(repository, None)}.commit.json"
    with files.locked(place):
        if place.is_file():
            return hub.listing(repository, files.read_json(place)["revision"], key, "dataset")
        newest = hub.listing(repository, None, key, "dataset")
        files.write_json(place, {"repository": repository, "revision": newest.commit})
    return newest


def require_agreement(source: hub.Listing, patterns: Sequence[str]) -> None:
    """As :func:`hub.require_agreement`, by what :func:`reading` says."""
    from entropy_valley import hub

    hub.require_agreement(source, patterns, _reading.get().agreed)


def folder_name(repository: str, revision: str | None) -> str:
    """The name of a data set's folder: another data set, or another commit of it, is in another folder."""
    return repository.replace("/", "--") + (f"@{revision[:8]}" if revision else "")


def fetched(repository: str, revision: str | None, folder: Path) -> dict[str, Any]:
    """Fetch the JSON Lines files of a commit (None: the newest) unless ``folder`` exists; its manifest.

    Interrupted downloads resume.
    """
    files.make_once(folder, lambda work: _fetch(repository, revision, work, "the `folder` of its sources"))
    return require_origin(folder, repository, revision)


def _fetch(repository: str, revision: str | None, folder: Path, key: str) -> None:
    from entropy_valley import hub  # only a download takes huggingface_hub, which loads slowly

    source = hub.listing(repository, revision, key, "dataset")
    require_agreement(source, PATTERNS)
    hub.fetch(source, folder, PATTERNS, key)
    origin = {"repository": repository, "revision": source.commit}
    paths = sorted(path for path in folder.rglob("*.jsonl") if path.is_file())
    digests = {str(path.relative_to(folder)): files.file_digest(path) for path in paths}
    files.write_json(folder / MANIFEST, {**origin, "files": digests})


def require_origin(folder: Path, repository: str, revision: str | None) -> dict[str, Any]:
    """The manifest of a folder. Raises InputError if it holds another data set or commit, or files were changed."""
    manifest = files.read_json(folder / MANIFEST)
    for fact, expected in (("repository", repository), ("revision", revision)):
        if expected and manifest[fact] != expected:
            remedy = "Name it in the config, or move the folder away and run again."
            raise InputError(folder, f"holds {fact} {manifest[fact]}, not {expected}", remedy)
    for name in manifest["files"]:
        require_as_downloaded(folder, folder / name)
    return manifest


def require_as_downloaded(folder: Path, path: Path) -> None:
    """Raise InputError if a file is not as the folder's manifest says; a folder without one is the user's own."""
    if not (folder / MANIFEST).is_file():
        return
    expected = files.read_json(folder / MANIFEST)["files"].get(str(path.relative_to(folder)))
    if expected is None or not path.is_file():
        raise InputError(path, "not a file of the data set", "Correct the name in the source's `files`.")
    if expected != (digest := files.file_digest(path)):
        raise InputError(path, f"changed since the download: digest {digest[:12]}, not {expected[:12]}", REMEDY)
