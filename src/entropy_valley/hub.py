"""Downloads: from the Hugging Face hub, pinned to a commit and checked, and of archives at other addresses.

Only what downloads imports huggingface_hub: that takes half a second, and reads the environment.
"""

import contextlib
import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal
from urllib.error import URLError
from urllib.request import urlopen

from entropy_valley import files, machine
from entropy_valley.errors import InputError, note
from entropy_valley.machine import amount

CHECKPOINT_FILES = ["*.safetensors", "*.json", "tokenizer*", "merges.txt", "vocab.*", "LICENSE*", "README.md"]
SMALL = 1e9  # bytes; a smaller download needs no agreement
CONFIRM = "--config confirm=yes"  # agrees to large downloads in a run of Snakemake
NETWORK = {"OSError", "HTTPError"}  # classes of errors of requests, or of httpx with huggingface_hub 1 and later
Kind = Literal["model", "dataset"]


class UnreachableError(InputError):
    """The hub cannot be reached, or must not be asked."""


@dataclass(frozen=True)
class File:
    """A file of a commit."""

    name: str
    size: int  # in bytes; 0 if unknown
    sha256: str | None  # of a large file; None for others


@dataclass(frozen=True)
class Listing:
    """A commit of a repository of models or of data, as the hub describes it."""

    repository: str
    commit: str
    licence: str
    files: tuple[File, ...]
    kind: Kind = "model"

    def matching(self, patterns: Sequence[str]) -> list[File]:
        """The files that match any of the patterns; InputError if none does."""
        from huggingface_hub.utils import filter_repo_objects

        matching = list(filter_repo_objects(self.files, allow_patterns=list(patterns), key=lambda file: file.name))
        if not matching:
            raise InputError(self.repository, f"has no {', '.join(patterns)} at {self.commit}", "Check the name.")
        return matching


def command(repository: str, revision: str | None, kind: Kind = "model", patterns: Sequence[str] = ()) -> str:
    """The command that downloads a commit (None: the newest) into a folder with the repository's name: all its files,
    or those that match ``patterns``."""
    options = " --repo-type dataset" * (kind == "dataset") + (f" --revision {revision}" if revision else "")
    options += "".join(f" --include '{pattern}'" for pattern in patterns)
    return f"`hf download {repository}{options} --local-dir {Path(repository).name}`"


def named(name: str | Path) -> tuple[str, str | None]:
    """The repository and the commit (None: not said) of ``OWNER/NAME`` or ``OWNER/NAME@COMMIT``.

    Raises InputError for any other name: it is then taken for a folder that does not exist.
    """
    match = re.fullmatch(r"(\w[\w.-]*/[\w.-]+)(?:@([0-9a-f]{40}))?", str(name))
    if match is None:
        raise InputError(name, "no such folder", "Give a folder, or OWNER/NAME or OWNER/NAME@COMMIT of the hub.")
    return match[1], match[2]


def place(repository: str, revision: str | None, subfolder: str | None = None) -> Path:
    """The folder of a repository, or of a part of it, among this user's downloads."""
    name = "/".join(filter(None, (repository, subfolder))).replace("/", "--")
    return files.cache_folder() / "models" / (f"{name}@{revision[:8]}" if revision else name)


def cached(repository: str, revision: str | None) -> Path | None:
    """The folder of a checkpoint in Hugging Face's own cache, in which other programs keep their downloads; None where
    it has no such commit (None: the newest that it knows)."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def listing(repository: str, revision: str | None, key: str, kind: Kind = "model") -> Listing:
    """The files and facts of a revision (None: the newest). ``key`` is the config key of a local copy.

    Raises InputError where the hub cannot be reached, and for a file whose name leads out of the repository.
    """
    from huggingface_hub import HfApi

    with _clear_errors(repository, revision, key, kind):
        info = HfApi().repo_info(repository, revision=revision, repo_type=kind, files_metadata=True)
    assert info.sha  # the hub's own, and its mirrors', always say it
    listed = []
    for one in info.siblings or ():
        name = one.rfilename
        if Path(name).is_absolute() or ".." in Path(name).parts:
            problem = f"has a file whose name leads out of its folder: {name}"
            raise InputError(repository, problem, "Use another repository.")
        listed.append(File(name, (one.lfs or one).size or 0, one.lfs.sha256 if one.lfs else None))
    licence = str((info.card_data and info.card_data.get("license")) or "not stated")
    return Listing(repository, info.sha, licence, tuple(listed), kind)


def require_agreement(source: Listing, patterns: Sequence[str], agreed: bool, option: str = CONFIRM) -> None:
    """Raise InputError if the files that match ``patterns`` are large, unless the user has agreed to downloads.

    ``option`` is what agrees on the command line.
    """
    size = sum(file.size for file in source.matching(patterns))
    if agreed or size < SMALL:
        return
    remedy = f"To agree, add at the end of the command: {option}. If you meant something else, correct it."
    problem = f"this would download {amount(size)} under the licence {source.licence}"
    raise InputError(source.repository, problem, remedy)


def fetch(source: Listing, folder: Path, patterns: Sequence[str], key: str) -> None:
    """Download the files that match ``patterns`` into ``folder``; an interrupted download resumes.

    Raises InputError if no file matches, if the hub cannot be reached, and for files whose size or sha256 is not the
    hub's.
    """
    from huggingface_hub import constants, snapshot_download

    wanted = source.matching(patterns)
    place, free = folder.absolute().parent, amount(machine.free(folder))
    what = f"{source.repository} at {source.commit}: {len(wanted)} files, {amount(sum(file.size for file in wanted))}"
    note(f"{what}, licence {source.licence}, into {place} ({free} free)")
    constants.HF_HUB_DISABLE_XET = True  # plain HTTP resumes inside a file, XET does not
    with _clear_errors(source.repository, source.commit, key, source.kind):
        snapshot_download(
            source.repository,
            repo_type=source.kind,
            revision=source.commit,
            local_dir=folder,
            allow_patterns=[glob.escape(file.name) for file in wanted],
        )
    # huggingface_hub checks no hashes, and keeps cut files after a lost connection.
    wrong = [file.name for file in wanted if not _is_whole(folder / file.name, file)]
    for name in wrong:
        (folder / name).unlink(missing_ok=True)
    if wrong:
        remedy = "Try again: only these are fetched again."
        raise InputError(folder, f"not the files of the hub: {', '.join(wrong)}", remedy)


def require_origin(folder: Path, origin: Mapping[str, Any], repository: str | None, commit: str | None) -> None:
    """Raise InputError where a folder holds another repository or commit than these, by what it says of its ``origin``.
    What either side does not say is not compared."""
    for fact, wanted in (("repository", repository), ("revision", commit)):
        if wanted and (held := origin.get(fact, wanted)) != wanted:
            raise InputError(folder, f"holds {fact} {held}, not {wanted}", "Name it in the config, or move the folder.")


def archive(address: str, path: Path, remedy: str) -> None:
    """Download a file of some megabytes from any address, unless ``path`` exists.

    Raises InputError with the ``remedy``.
    """
    with files.locked(path):
        if path.exists():
            return
        try:
            with urlopen(address, timeout=60) as answer:
                content = answer.read()  # whole: read in parts, a connection that breaks off is no error
        except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
            raise InputError(address, f"cannot be downloaded ({error})", f"Run again. Or: {remedy}") from None
        with files.atomic(path) as part:
            part.write_bytes(content)


def _is_whole(path: Path, file: File) -> bool:
    if not path.is_file() or file.size not in (0, path.stat().st_size):
        return False
    return file.sha256 is None or file.sha256 == files.sha256(path)


@contextlib.contextmanager
def _clear_errors(repository: str, revision: str | None, key: str, kind: Kind) -> Iterator[None]:
    """Turn the hub's errors into one InputError with a remedy."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError

    copy = f"with a network run {command(repository, revision, kind)}, copy the folder, and set {key} to it"
    try:
        yield
    except HFValidationError as error:
        raise InputError(repository, f"not the name of a repository ({error})", "Write OWNER/NAME.") from None
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if not NETWORK & kinds or getattr(error, "errno", None) is not None:  # one of the disk, or ours
            raise
        response = getattr(error, "response", None)
        if response is not None and response.status_code in (401, 403):
            problem = "is gated, private, or does not exist, or your token for the hub is not valid"
            remedy = f"Accept its licence on its page on the hub, run `hf auth login`, and try again; or {copy}."
            raise InputError(repository, problem, remedy) from None
        reason = " ".join([line for line in str(error).splitlines() if line][:2])
        remedy = f"Try again, or {copy}."
        if response is None:
            reason = f"no answer from {constants.ENDPOINT}, or HF_HUB_OFFLINE is set: {reason}"
            raise UnreachableError(repository, f"cannot be downloaded ({reason})", remedy) from None
        raise InputError(repository, f"cannot be downloaded ({reason})", remedy) from None
