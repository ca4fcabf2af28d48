"""What a killed training goes on from, and whether it is whole; torch is not needed to know."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError

POINTER = "last.json"  # names the last complete checkpoint in a training's work folder
STATE = "state.pt"  # of a pre-training: the digest of the rest, then what torch saves
_DIGEST = 32  # bytes of it


class HashedFile(io.BufferedWriter):
    """A new file that is hashed while it is written: a checkpoint of an 8B model's training has 2.7 GB."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(io.FileIO(path, "w"))
        self._hash = hashlib.blake2b(digest_size=16)

    def write(self, content: Any) -> int:
        self._hash.update(content)
        return super().write(content)

    @property
    def digest(self) -> str:
        """:func:`files.file_digest` of what has been written."""
        return self._hash.hexdigest()


def last(work: Path) -> dict[str, Any]:
    """What the pointer of a work folder says; {} without one. Raises InputError where it says nothing."""
    said = files.read_json(work / POINTER) if (work / POINTER).exists() else {}
    if not isinstance(said, dict):
        raise _damaged(work / POINTER, "names no checkpoint", work)
    return said


def require_whole(work: Path) -> None:
    """Raise InputError unless the last checkpoint of a work folder is as it was written; earlier versions wrote no
    digests."""
    said = last(work)
    for name, digest in said.get("digests", {}).items():
        path = work / said["tag"] / name
        if not path.is_file():
            raise _damaged(path, "file not found", work)
        if (found := files.file_digest(path)) != digest:
            raise _damaged(path, f"not as it was written: digest {found[:12]}, not {digest[:12]}", work)


def with_digest(content: bytes) -> bytes:
    """The content of a pre-training's file, for :func:`without_digest`."""
    return files.bytes_digest(content).encode() + content


def without_digest(path: Path) -> bytes:
    """What torch has saved in a pre-training's file. Raises InputError where it is not as it was written; the file of
    an earlier version has no digest."""
    content = path.read_bytes()
    if content.startswith(b"PK"):  # a zip archive, as torch writes it
        return content
    if files.bytes_digest(content[_DIGEST:]).encode() != content[:_DIGEST]:
        raise _damaged(path, "not as it was written", path.parent)
    return content[_DIGEST:]


def _damaged(path: Path, problem: str, work: Path) -> InputError:
    return InputError(path, problem, f"Remove {work}: the training then starts anew.")
