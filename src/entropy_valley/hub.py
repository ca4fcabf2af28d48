"""Downloads from the Hugging Face hub: pinned to a commit, resumed and checked."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from huggingface_hub import HfApi, constants, hf_hub_url, snapshot_download
from huggingface_hub.errors import GatedRepoError, HFValidationError
from huggingface_hub.utils import build_hf_headers, disable_progress_bars, filter_repo_objects

from entropy_valley import remote
from entropy_valley.errors import InputError
from entropy_valley.limits import amount
from entropy_valley.progress import progress

CHECKPOINT_FILES = ["*.safetensors", "*.json", "tokenizer*", "merges.txt", "vocab.*", "LICENSE*", "README.md"]
SMALL = 1e9  # bytes; a smaller download needs no agreement
_MB, _GB = 10**6, 10**9
Kind = Literal["model", "dataset"]
_NOTES = ".cache"  # huggingface_hub's own folder in the folder that it fills


@dataclass(frozen=True)
class File:
    """A file of a commit."""

    name: str
    size: int  # in bytes; 0 if unknown
    etag: str | None  # sha256 of a large file, git's sha1 of others; None if unknown


@dataclass(frozen=True)
class Listing:
    """A commit of a repository of models or of data, as the hub describes it."""

    repository: str
    commit: str
    licence: str
    gated: bool
    files: tuple[File, ...]
    kind: Kind = "model"


def command(repository: str, revision: str | None, kind: Kind = "model") -> str:
    """The command that downloads a commit (None: the newest) into a folder with the repository's name."""
    of = " --repo-type dataset" * (kind == "dataset") + (f" --revision {revision}" if revision else "")
    return f"`hf download {repository}{of} --local-dir {Path(repository).name}`"


def resolve(repository: str, revision: str | None, key: str) -> str:
    """The commit of a revision (None: the newest). ``key`` is the config key of a local copy."""
    return listing(repository, revision, key).commit


def listing(repository: str, revision: str | None, key: str, kind: Kind = "model") -> Listing:
    """The files and facts of a revision (None: the newest)."""
    with _clear_errors(repository, revision, key, kind):
        info = HfApi().repo_info(repository, revision=revision, repo_type=kind, files_metadata=True)
    found = (
        File(file.rfilename, (file.lfs or file).size or 0, file.lfs.sha256 if file.lfs else file.blob_id)
        for file in info.siblings
    )
    licence = str((info.card_data or {}).get("license") or "not stated")
    return Listing(repository, info.sha, licence, bool(info.gated), tuple(found), kind)


def download(repository: str, commit: str | None, folder: Path, patterns: list[str], key: str) -> None:
    """Fetch the files of a commit (None: the newest) that match ``patterns``; see :func:`fetch`."""
    fetch(listing(repository, commit, key), folder, patterns, key)


def fetch(source: Listing, folder: Path, patterns: list[str], key: str) -> None:
    """Fetch the files that match ``patterns`` into ``folder``; interrupted downloads resume.

    If an earlier download was of another commit, only the files that are the same stay. Raises InputError if no file
    matches or the disk is too small, before downloading; and after it for files that differ from the hub's hashes.
    """
    wanted = _matching(source, patterns)
    folder.mkdir(parents=True, exist_ok=True)
    _remove_others(folder, wanted, patterns)
    _announce(source, wanted, folder)
    _require_space(folder, wanted, key)
    _transfer(source, wanted, folder, key)
    _verify(folder, wanted)
    shutil.rmtree(folder / _NOTES, ignore_errors=True)


def require_agreement(source: Listing, patterns: Sequence[str], agreed: bool) -> None:
    """Raise InputError if the files that match ``patterns`` are large, unless the config has agreed to downloads."""
    sizes = [file.size for file in _matching(source, patterns)]
    if agreed or (0 not in sizes and sum(sizes) < SMALL):
        return
    size = amount(sum(sizes)) if all(sizes) else "data of a size that is not known"
    remedy = "To agree, add at the end of the command: --config confirm=yes. If you meant something else, correct it."
    raise InputError(source.repository, f"this job would download {size}, which is not here", remedy)


def opened(source: Listing, file: File) -> BinaryIO:
    """A file of a commit, read from the hub as far as it is asked for; see :mod:`remote`."""
    address = hf_hub_url(source.repository, file.name, repo_type=source.kind, revision=source.commit)
    return remote.buffered(remote.RemoteFile(address, file.size, build_hf_headers()))


def _matching(source: Listing, patterns: Sequence[str]) -> list[File]:
    wanted = list(filter_repo_objects(source.files, allow_patterns=patterns, key=lambda file: file.name))
    if not wanted:
        raise InputError(source.repository, f"has no {', '.join(patterns)} at {source.commit}", "Check the name.")
    return wanted


def _transfer(source: Listing, wanted: Sequence[File], folder: Path, key: str) -> None:
    _set_up()
    names = [glob.escape(file.name) for file in wanted]
    what: dict[str, Any] = {"repo_type": source.kind, "revision": source.commit}
    with _bar(folder, wanted), _clear_errors(source.repository, source.commit, key, source.kind):
        snapshot_download(source.repository, **what, local_dir=folder, allow_patterns=names)


def _set_up() -> None:
    """Options that huggingface_hub has only for the whole process."""
    constants.HF_HUB_DISABLE_XET = True  # plain HTTP resumes inside a file, XET does not
    disable_progress_bars()  # one bar per file, and none in logs: ours counts all bytes


def _remove_others(folder: Path, wanted: Sequence[File], patterns: list[str]) -> None:
    """Remove what an earlier try fetched of another commit."""
    names, etags = {file.name for file in wanted}, {file.etag for file in wanted}
    present = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    for name in filter_repo_objects(present, allow_patterns=patterns, ignore_patterns=f"{_NOTES}/*"):
        if name not in names:
            (folder / name).unlink()
    for path in _partial(folder):
        if path.suffixes[-2].removeprefix(".") not in etags:
            path.unlink()


def _partial(folder: Path) -> list[Path]:
    """huggingface_hub's partially downloaded files: ``….{etag}.incomplete``."""
    return list((folder / _NOTES).rglob("*.incomplete"))


def _present(folder: Path, wanted: Sequence[File]) -> int:
    """Bytes of a download that are already on disk."""
    whole = sum(min(_size(folder / file.name), file.size) for file in wanted)
    return whole + sum(_size(path) for path in _partial(folder))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # not yet begun, or just renamed by a download
        return 0


def _announce(source: Listing, wanted: Sequence[File], folder: Path) -> None:
    total, present = sum(file.size for file in wanted), _present(folder, wanted)
    page = _page(source.repository, source.kind)
    gate = f"gated: accept it at {page}, then `hf auth login`" if source.gated else "not gated"
    print(
        f"{source.repository} at {source.commit}",
        f"  licence {source.licence} ({gate})",
        f"  {len(wanted)} files, {total / _GB:.2f} GB, {present / _GB:.2f} GB of it already on disk",
        f"  {shutil.disk_usage(folder).free / _GB:.2f} GB free in {folder}",
        sep="\n",
        file=sys.stderr,
        flush=True,
    )


def _require_space(folder: Path, wanted: Sequence[File], key: str) -> None:
    needed = sum(file.size for file in wanted) - _present(folder, wanted)
    free = shutil.disk_usage(folder).free
    if needed > free:
        problem = f"the download needs {needed / _GB:.2f} GB more, {free / _GB:.2f} GB are free"
        remedy = f"Free {(needed - free) / _GB:.2f} GB there, or point {key} to a copy elsewhere."
        raise InputError(folder, problem, remedy)


@contextlib.contextmanager
def _bar(folder: Path, wanted: Sequence[File]) -> Iterator[None]:
    """A progress bar of all bytes; it looks into the folder once a second."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1):
            bar.update(max(0, _present(folder, wanted) // _MB - bar.n))

    whole, there = sum(file.size for file in wanted) // _MB, _present(folder, wanted) // _MB
    with progress(total=whole, description="download", unit="MB", initial=there) as bar:
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            bar.update(max(0, _present(folder, wanted) // _MB - bar.n))


def _verify(folder: Path, wanted: Sequence[File]) -> None:
    """Check sizes and hashes: huggingface_hub does not, and keeps cut files after a lost connection."""
    checked = progress(wanted, description="check", unit="file")
    wrong = [file.name for file in checked if not _is_whole(folder / file.name, file)]
    for name in wrong:
        (folder / name).unlink(missing_ok=True)
    if wrong:
        raise InputError(
            folder, f"not the files of the hub: {', '.join(wrong)}", "Try again: only these are fetched again."
        )


def _is_whole(path: Path, file: File) -> bool:
    if not path.is_file() or file.size not in (0, _size(path)):
        return False
    is_large = len(file.etag or "") == 64
    digest = hashlib.sha256() if is_large else hashlib.sha1(f"blob {_size(path)}\0".encode())
    with path.open("rb") as content:
        return file.etag in (None, hashlib.file_digest(content, lambda: digest).hexdigest())


@contextlib.contextmanager
def _clear_errors(repository: str, revision: str | None, key: str, kind: Kind) -> Iterator[None]:
    """Turn the hub's errors into one InputError with a remedy."""
    copy = (
        f"on a machine with a network run {command(repository, revision, kind)}, copy the folder, and point {key} to it"
    )
    try:
        yield
    except HFValidationError as error:
        raise InputError(repository, f"not the name of a repository ({error})", "Write OWNER/NAME.") from None
    except OSError as error:  # all errors of huggingface_hub and requests are OSErrors
        if error.errno is not None:  # an error of the disk
            raise
        if isinstance(error, GatedRepoError) or _status(error) in (401, 403):
            raise InputError(
                repository,
                "is gated" if isinstance(error, GatedRepoError) else "is gated, private, or does not exist",
                f"Accept its licence at {_page(repository, kind)}, run `hf auth login`, and try again; or {copy}.",
            ) from None
        reason = " ".join([line for line in str(error).splitlines() if line][:2])
        raise InputError(repository, f"cannot be downloaded ({reason})", f"Try again, or {copy}.") from None


def _page(repository: str, kind: Kind) -> str:
    return f"{constants.ENDPOINT}/{'datasets/' * (kind == 'dataset')}{repository}"


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error of huggingface_hub, or of its cause."""
    response = getattr(error, "response", None)
    if response is None:
        return _status(error.__cause__) if error.__cause__ else None
    return response.status_code
