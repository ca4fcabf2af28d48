"""Reading and writing the files between rooms: whole or not at all, UTF-8, digested."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley.errors import InputError


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: Any) -> str:
    """128-bit blake2b of a JSON-able value, as 32 hex digits."""
    return hashlib.blake2b(canonical(value).encode(), digest_size=16).hexdigest()


def file_digest(path: str | Path) -> str:
    """128-bit blake2b of a file's bytes, as 32 hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def cache_folder() -> Path:
    """``$ENTROPY_VALLEY_CACHE``, by default ``~/.cache/entropy-valley``: what any experiment may find again."""
    return Path(os.environ.get("ENTROPY_VALLEY_CACHE", "~/.cache/entropy-valley")).expanduser()


@contextlib.contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, renamed onto it only when the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    permit(temporary)
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say which file it cut
        raise
    finally:
        temporary.unlink(missing_ok=True)


def permit(path: Path) -> None:
    """Give a file that its library closed to others the permissions of any new file."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def write_text(path: str | Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    write_text(path, json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2) + "\n")


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_lines(path: str | Path) -> list[str]:
    """The lines of a UTF-8 text file without their newline; missing, empty or badly encoded is an InputError."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InputError(path, "file not found", "Check the path, or run the rule that makes it.") from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}:{line}",
            f"not UTF-8 (byte {error.object[error.start]:#04x})",
            f"Convert it, for example: iconv -f LATIN1 -t UTF-8 {path}",
        ) from None
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    if lines == [""]:
        raise InputError(path, "file is empty", "Give a file with at least one sentence.")
    return [line.removesuffix("\r") for line in lines]


def read_json(path: str | Path) -> Any:
    try:
        return json.loads("\n".join(read_lines(path)))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}", f"not JSON ({error.msg})", "Remove the file and run again."
        ) from None


def read_jsonl(path: str | Path, keys: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows of a JSON Lines file, each an object that has all of ``keys``."""
    return [_row(path, number, line, keys) for number, line in enumerate(read_lines(path), 1)]


def _row(path: str | Path, number: int, line: str, keys: Sequence[str]) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{number}",
            f"not a JSON object ({error.msg}): {line[:60]!r}",
            "Each line must be one JSON object; remove blank lines.",
        ) from None
    missing = [key for key in keys if not isinstance(row, dict) or key not in row]
    if missing:
        raise InputError(f"{path}:{number}", f"no {', '.join(missing)}", f"Each row needs {', '.join(keys)}.")
    return row
