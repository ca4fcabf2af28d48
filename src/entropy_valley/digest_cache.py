"""Digests of large files, computed once: no job reads gigabytes only to hash them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError

ENDING = ".digests"  # of the hidden file beside the large ones; no pattern for a checkpoint's own files matches it
SETTLED = 2.0  # seconds since a change; a file that changes again at once may keep its time
_read_again: ContextVar[bool] = ContextVar("read_again", default=False)


@contextlib.contextmanager
def reading_all(again: bool = True) -> Iterator[None]:
    """Let the block compute digests anew, whatever is kept: a disk that loses bits changes no time of a file."""
    token = _read_again.set(again)
    try:
        yield
    finally:
        _read_again.reset(token)


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


class Digests:
    """The digests of many files, all kept in one file: of those that still have the same size, times and inode.

    Paths are as they are given. With :func:`reading_all` none counts that was kept.
    """

    def __init__(self, place: Path) -> None:
        self._place, self._kept = place, (_read(place) or {}).get("said", {})
        self._changed = False

    def of(self, path: str, about: os.stat_result, compute: Callable[[str], Any] | None = None) -> Any:
        """The digest of a file; or what else ``compute`` says of it, which must be the same of a path each time."""
        stamp = [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]
        kept = self._kept.get(path)
        if kept and kept[:-1] == stamp:
            return kept[-1]
        found = (compute or files.file_digest)(path)
        if time.time() - about.st_ctime > SETTLED:
            self._kept[path], self._changed = [*stamp, found], True
        return found

    def keep(self) -> None:
        """Write them, if there are new ones and the place can be written to."""
        if self._changed:
            with contextlib.suppress(OSError):
                files.write_text(self._place, files.canonical({"said": self._kept}))
            self._changed = False


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
    if _read_again.get() or not os.access(place, os.R_OK):
        return None
    with contextlib.suppress(InputError):
        kept = files.read_json(place)
        return kept if isinstance(kept, dict) and "said" in kept else None
    return None
