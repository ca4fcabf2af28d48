"""Digests of large files, computed once: no job reads gigabytes only to hash them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError

ENDING = ".digests"  # of the hidden file beside the large ones; no pattern for a checkpoint's own files matches it


def remembered(paths: Sequence[Path], compute: Callable[[], Any]) -> Any:
    """What ``compute`` says of the files ``paths`` of one folder, as JSON.

    It is kept beside them, for all machines that see the folder, or in the user's cache where the folder cannot be
    written to. It counts as long as each file has the same size, time and inode; copies have others.
    """
    stamps = [_stamp(path) for path in paths]
    places = _places(paths, stamps)
    for place in places:
        if (kept := _read(place)) and kept.get("files") == stamps:
            return kept["said"]
    said = compute()
    for place in places:
        with contextlib.suppress(OSError):  # read-only or full: the next job computes it again
            files.write_json(place, {"files": stamps, "said": said})
            break
    return said


def remembered_digest(path: Path) -> str:
    """:func:`files.file_digest`, computed once."""
    return remembered([path], lambda: {"digest": files.file_digest(path)})["digest"]


def digests(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """The :func:`files.file_digest` of each file of a folder, by its name there, computed once."""
    return remembered(
        [folder / name for name in names], lambda: {name: files.file_digest(folder / name) for name in names}
    )


def _stamp(path: Path) -> list[Any]:
    about = path.stat()
    return [path.name, about.st_size, about.st_mtime_ns, about.st_ino]


def _places(paths: Sequence[Path], stamps: Sequence[list[Any]]) -> list[Path]:
    """Beside the files, then in the user's cache, where the name says which files of which folder it is of."""
    names = files.digest([path.name for path in paths])
    beside = [paths[0].parent / f".{names[:12]}{ENDING}"] if paths else []
    resolved = files.digest([[str(path.resolve()), *stamp] for path, stamp in zip(paths, stamps, strict=True)])
    return [*beside, files.cache_folder() / "digests" / f"{resolved}.json"]


def _read(place: Path) -> dict[str, Any] | None:
    """A damaged file is as none; so is one that somebody else wrote and that is not for us to read."""
    if not os.access(place, os.R_OK):
        return None
    with contextlib.suppress(InputError):
        kept = files.read_json(place)
        return kept if isinstance(kept, dict) and "said" in kept else None
    return None
