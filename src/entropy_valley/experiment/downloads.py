"""Whether what was downloaded, or is the user's own, is as the result says that describes it."""

from __future__ import annotations

from pathlib import Path

from entropy_valley import errors, files
from entropy_valley.backbone import checkpoint
from entropy_valley.digest_cache import Digests
from entropy_valley.experiment.result import Result
from entropy_valley.scoring import comet_origin


def damage(result: Result, digests: Digests) -> str:
    """What is wrong with the files that a result describes; empty if nothing is, or where their folder has moved away.

    Digests of large files are computed once, see :mod:`digest_cache`.
    """
    if not result.elsewhere:
        return ""
    folder, said = Path(result.elsewhere), Path(result.paths[0])
    if not folder.is_dir():
        return ""
    if result.rule == "fetch_dataset":
        return _dataset(folder, said, digests)
    check = checkpoint.require_same if result.rule == "fetch_backbone" else _comet
    return errors.refusal(check, folder, said) or ""


def _comet(folder: Path, said: Path) -> None:
    found = files.read_json(said)
    comet_origin.check(folder, found["repository"], found["revision"])


def _dataset(folder: Path, said: Path, digests: Digests) -> str:
    """A data set's files are many, and each job that reads one of them checks it."""
    for name, digest in files.read_json(said).get("files", {}).items():
        path = folder / name
        if not path.is_file():
            return f"no {path}"
        if digests.of(str(path), path.stat()) != digest:
            return f"{path} changed since the download"
    return ""
