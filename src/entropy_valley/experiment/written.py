"""Files of results beside what their records say of them: each folder is listed once, each file is read once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from entropy_valley import provenance
from entropy_valley.digest_cache import Digests
from entropy_valley.provenance import ENDING, Record

KEPT = "work/audit.digests"  # in the results: digests of files that have not changed since
NO_RESULTS = ("audit", "benchmarks", "logs", "params", "store", "work")  # folders of the results without records


class Written:
    """The files in a results folder, ``root``."""

    def __init__(self, root: str) -> None:
        self.root, self.digests = root, Digests(Path(root, KEPT))
        self._apart = {f"{root}/{name}" for name in NO_RESULTS}
        self._folders: dict[str, dict[str, os.DirEntry[str]]] = {}

    def listed(self, folder: str) -> dict[str, os.DirEntry[str]]:
        """The entries of a folder by name; none where there is no folder."""
        if folder not in self._folders:
            self._folders[folder] = _entries(folder)
        return self._folders[folder]

    def about(self, folder: str, name: str) -> os.stat_result | None:
        """Size and times of a file in a folder, or below it; None for what is no file."""
        below, _, last = name.rpartition("/")
        entry = self.listed(f"{folder}/{below}" if below else folder).get(last)
        return entry.stat() if entry and entry.is_file() else None

    def record(self, folder: str, name: str) -> Record | None:
        """A record; None where there is none, ValueError for one that cannot be read."""
        if not self.about(folder, name):
            return None
        with open(f"{folder}/{name}", "rb") as file:  # thousands of times: pathlib takes as long as all else here
            return provenance.parse(file.read())

    def wrong(self, folder: str, name: str, was: Mapping[str, Any] | None) -> str:
        """What is wrong with a file; ``was`` are its digest and size, as its record has them."""
        about = self.about(folder, name)
        if about is None:
            return f"no {name}"
        if not about.st_size:
            return f"{name} is empty"
        if was and was["bytes"] != about.st_size:
            return f"{name} has {about.st_size} bytes; {was['bytes']} were written"
        if was and was["digest"] != self.digests.of(f"{folder}/{name}", about):
            return f"{name} is not what was written: its digest differs"
        return ""

    def records(self) -> Iterator[tuple[str, str]]:
        """Folder and name of every record."""
        folders = [self.root]
        while folders:
            folder = folders.pop()
            for name, entry in self.listed(folder).items():
                if name.endswith(ENDING):
                    yield folder, name
                elif entry.is_dir(follow_symlinks=False) and name[0] != "." and f"{folder}/{name}" not in self._apart:
                    folders.append(f"{folder}/{name}")


def _entries(folder: str) -> dict[str, os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return {}
