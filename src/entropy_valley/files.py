"""Files: read with clear errors, written whole or not at all, and named by digests of their content."""

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from entropy_valley import texts
from entropy_valley.errors import InputError, brief, note

# --- Reading: whatever a file is and holds, its reader ends soon, and with an InputError if it cannot be read.

T = TypeVar("T")
MOST = 2**26  # bytes of a file from others that is read at once


def regular(path: str | Path, most: int | None = None) -> Path:
    """The path. Raises InputError unless it is a regular file of at most ``most`` bytes: a pipe may never end."""
    path = Path(path)
    if not path.is_file():
        raise not_there(path)
    if most is not None and (size := path.stat().st_size) > most:
        raise InputError(path, f"{size:,} bytes, more than {most:,}, the most of such a file", "Name another file.")
    return path


def not_there(path: str | Path) -> InputError:
    """The error for a path that is not a regular file."""
    if Path(path).exists():
        return InputError(path, f"is a {'folder' if Path(path).is_dir() else 'pipe'}, not a file", "Name a file.")
    return InputError(path, "file not found", "Check the path, or run the rule that makes it.")


@contextlib.contextmanager
def readable(path: str | Path, kind: str, remedy: str) -> Iterator[None]:
    """The block reads a file with a library, which raises anything where the file is damaged: here an InputError."""
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        raise unreadable(path, kind, error, remedy) from None


def unreadable(path: str | Path, kind: str, error: BaseException, remedy: str) -> BaseException:
    """The InputError for a file with which a library raised this; what ends the process, as Ctrl-C, stays."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # Rust's is no Exception
        return error
    reason = (str(error).strip() or repr(error)).splitlines()[0]
    return InputError(path, f"is not a {kind} that can be read ({brief(reason)})", remedy)


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The content of a file. Raises InputError as :func:`regular` does."""
    return regular(path, most).read_bytes()


def read_lines(path: str | Path, most: int | None = None) -> list[str]:
    """The lines of a UTF-8 text file without their newline. Raises InputError as :func:`regular` and
    :func:`.texts.lines` do."""
    return texts.lines(Path(path), read_bytes(path, most))


def read_json(path: str | Path, most: int | None = None) -> Any:
    """The value of a JSON file of at most ``most`` bytes."""
    return _json(path, "\n".join(read_lines(path, most)))


def read_jsonl(path: str | Path, keys: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows of a JSON Lines file, each an object that has all of ``keys``."""
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        place = f"{path}:{number}"
        row = _json(path, line, number)
        if missing := [key for key in keys if not isinstance(row, dict) or key not in row]:
            raise InputError(place, f"no {', '.join(missing)}", f"Each row needs {', '.join(keys)}.")
        rows.append(row)
    return rows


def _json(path: str | Path, text: str, line: int | None = None) -> Any:
    """The value of a JSON text; ``line`` is its place in the file, where it is a line of one."""
    try:
        return json.loads(text)
    except RecursionError:
        problem, at = "nested too deeply", 0
    except ValueError as error:  # also for a number of too many digits, which has no place
        problem, at = getattr(error, "msg", str(error)), getattr(error, "pos", 0)
    place = f"{path}:{line or text.count(chr(10), 0, at) + 1}"
    raise InputError(
        place,
        f"not JSON ({problem}): {brief(text[max(0, at - 20) : at + 40])}",
        "Correct it, or fetch or make it again.",
    )


# --- Writing: files and folders are written whole or not at all.

_FAILED_WRITE = re.compile(r"inline_container\.cc|PytorchStreamWriter")


@contextlib.contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield the path of a new file beside ``path``. It is renamed to ``path`` when the block succeeds, else removed."""
    path = Path(path)
    temporary = _beside(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path):
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A hidden path beside ``path``, for what is not whole yet."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError in the block name ``path``, if it names no file (a full disk) or what stands for it until then."""
    try:
        yield
    except OSError as error:
        if not error.filename or f".{path.name}." in str(error.filename):
            error.filename, error.filename2 = str(path), None
        raise


@contextlib.contextmanager
def saving(path: Path) -> Iterator[None]:
    """:func:`naming` for torch: its own exceptions for a failed write become an OSError."""
    try:
        with naming(path):
            yield
    except Exception as error:
        if not _FAILED_WRITE.search(str(error)) or isinstance(error, OSError):
            raise
        raise OSError(errno.EIO, f"not written ({error})", str(path)) from error


def write_text(path: str | Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    write_text(path, json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One row on each line; a large file is never held as a whole."""
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


@contextlib.contextmanager
def atomic_folder(folder: str | Path) -> Iterator[Path]:
    """Yield a new folder beside ``folder``. It replaces ``folder`` when the block succeeds, else it is removed.

    A kill between the two steps of the replacement leaves no folder, and the job makes it again.
    """
    folder = Path(folder)
    temporary = _beside(folder)
    new, old = temporary / "new", temporary / "old"
    with naming(folder):
        new.mkdir(parents=True)
        try:
            yield new
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
        finally:
            shutil.rmtree(temporary)


def make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make ``folder`` with ``fill`` unless it exists.

    ``fill`` gets a work folder beside it, with the files that an earlier try left; it is renamed to ``folder`` when
    ``fill`` succeeds. Only one process fills it; the others wait.
    """
    if folder.is_dir():  # without a lock: its parent may be read-only
        return
    with locked(folder):
        if not folder.is_dir():
            work = folder.with_name(f".{folder.name}.part")
            fill(work)
            work.rename(folder)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, a file beside it; wait while another process holds it, of any workflow."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        note(f"{folder}: another job is using it; waiting")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


# --- Digests: of values by their JSON text, of files by their bytes.


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """128-bit blake2b of a JSON-able value, as 32 hex digits."""
    return text_digest(canonical(value))


def text_digest(text: str) -> str:
    """128-bit blake2b of a text, as 32 hex digits."""
    return bytes_digest(text.encode())


def bytes_digest(content: bytes) -> str:
    """128-bit blake2b, as 32 hex digits: what :func:`file_digest` gives of a file with this content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def file_digest(path: str | Path) -> str:
    """128-bit blake2b of a file's bytes, as 32 hex digits."""
    with open(regular(path), "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def read_once(most: int | None) -> Callable[[Callable[[Path], T]], Callable[[str | Path], T]]:
    """A reader of files that reads each once while it stays: until its time, size or inode is another. It keeps what
    ``most`` files hold (None: all), and raises InputError for one that is not there."""

    def keeping(read: Callable[[Path], T]) -> Callable[[str | Path], T]:
        @functools.lru_cache(most)
        def kept(path: Path, *version: int) -> T:
            return read(path)

        @functools.wraps(read)
        def call(path: str | Path) -> T:
            about = regular(path).stat()
            return kept(Path(path), about.st_mtime_ns, about.st_size, about.st_ino)

        return call

    return keeping


# Of a checkpoint several parts of a job ask, and reading it takes as long as loading it.
digest_once = read_once(None)(file_digest)


def sha256(path: str | Path) -> str:
    """The sha256 of a file, as others publish it."""
    with open(regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """The :func:`file_digest` of each file, by its name."""
    return {Path(path).name: file_digest(path) for path in paths}


def cache_folder() -> Path:
    """``$ENTROPY_VALLEY_CACHE``, or ``entropy-valley`` in ``$XDG_CACHE_HOME`` (``~/.cache``): downloads for all
    experiments."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "entropy-valley")
    return Path(os.environ.get("ENTROPY_VALLEY_CACHE") or usual).expanduser()
