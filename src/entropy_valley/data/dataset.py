"""Data sets of the Hugging Face hub as folders: downloaded once, of one commit, with the digest of every file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from entropy_valley import files, hub
from entropy_valley.errors import InputError
from entropy_valley.settings import Foreign, JsonObject, read_object

MANIFEST = "dataset.json"
ABOUT = ["LICENSE*", "README.md"]  # what is downloaded with the files that are read
REMEDY = "Remove the folder and its JSON file in `datasets`, and run again."


class HubFiles(NamedTuple):
    """Files of a data set of the hub: those at a ``revision`` (None: the newest commit) that match ``patterns``.
    ``part`` names them where they are not the whole data set."""

    repository: str
    revision: str | None
    patterns: Sequence[str]
    part: str = ""

    def __str__(self) -> str:
        return f"{self.repository} {self.part}".rstrip()

    @property
    def folder(self) -> str:
        """The name of their folder: another data set, part or commit is in another folder."""
        revision = f"@{self.commit[:8] if self.commit else self.revision}" if self.revision else ""
        return re.sub("[/ ]", "--", f"{self}{revision}")

    @property
    def commit(self) -> str | None:
        """The commit that ``revision`` names; None if it is a tag or a branch, or the newest."""
        return self.revision if re.fullmatch("[0-9a-f]{40}", self.revision or "") else None


def fetched(wanted: HubFiles, folder: Path, agreed: bool) -> JsonObject:
    """Fetch files of a data set unless ``folder`` exists; its manifest. Interrupted downloads resume.

    ``agreed``: whether the user has agreed to large downloads. Raises InputError if the folder holds another data set
    or commit.
    """
    files.make_once(folder, lambda work: _fetch(wanted, work, agreed))
    manifest = read_object(folder / MANIFEST, Manifest)
    hub.require_origin(folder, manifest, wanted.repository, wanted.commit)
    return manifest


def _fetch(wanted: HubFiles, folder: Path, agreed: bool) -> None:
    key = f"the `folder` of its sources (they read {' and '.join(wanted.patterns)})"
    source = hub.listing(wanted.repository, wanted.revision, key, "dataset")
    read = [file.name for file in source.matching(wanted.patterns)]
    patterns = [*wanted.patterns, *ABOUT]
    hub.require_agreement(source, patterns, agreed)
    hub.fetch(source, folder, patterns, key)
    digests = {name: files.file_digest(folder / name) for name in sorted(read)}
    manifest = {"repository": wanted.repository, "revision": source.commit, "files": digests}
    files.write_json(folder / MANIFEST, manifest)


class Manifest(Foreign):
    """``dataset.json``: the digest of each file that is read."""

    repository: str
    revision: str
    files: dict[str, str]


def present(folder: str | None, place: str) -> Path:
    """The folder of a source's files. Raises InputError, about ``place``, where they are not downloaded yet."""
    if folder is None:
        raise InputError(place, "is not downloaded yet", "Run the workflow, or set the source's `folder`.")
    return Path(folder)


def require_as_downloaded(folder: Path, path: Path) -> None:
    """Raise InputError if a file is not as the folder's manifest says; a folder without one is the user's own."""
    if not (folder / MANIFEST).is_file():
        return
    expected = read_object(folder / MANIFEST, Manifest)["files"].get(str(path.relative_to(folder)))
    if expected is None or not path.is_file():
        raise InputError(path, "not a file of the data set", "Correct the name in the source's `files`.")
    if expected != (digest := files.digest_once(path)):
        raise InputError(path, f"changed since the download: digest {digest[:12]}, not {expected[:12]}", REMEDY)
