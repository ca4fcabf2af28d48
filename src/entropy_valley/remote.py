"""Files behind an address, read by ranges of bytes: what a lost connection has interrupted goes on where it stopped."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import requests

from entropy_valley import locks
from entropy_valley.errors import InputError
from entropy_valley.progress import progress

WAITS = (1, 2, 4, 8, 16, 30, 60, 60, 120, 300)  # seconds before each new try: ten minutes in all
BLOCK = 8 * 2**20  # bytes of a request
TIMEOUT = 60  # seconds without an answer
_LOST = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
_MB = 10**6


class RemoteFile(io.RawIOBase):
    """A file of ``size`` bytes that can be read from any place; its server answers requests for ranges.

    A request whose connection is lost is sent again after each of :data:`WAITS`. Then, and for an answer that no
    waiting changes, reading raises OSError.
    """

    def __init__(self, address: str, size: int, headers: Mapping[str, str] | None = None) -> None:
        self._address, self._size, self._headers, self._place = address, size, dict(headers or {}), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: memoryview) -> int:
        end = min(self._place + len(buffer), self._size)
        content = self._patiently(self._place, end) if self._place < end else b""
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)

    def _patiently(self, begin: int, end: int) -> bytes:
        for wait in WAITS:
            try:
                return self._request(begin, end)
            except OSError as error:
                if not _may_pass(error):
                    raise
                print(f"{self._address}: {error}; trying again in {wait} s", file=sys.stderr, flush=True)
                time.sleep(wait)
        return self._request(begin, end)

    def _request(self, begin: int, end: int) -> bytes:
        headers = {**self._headers, "Range": f"bytes={begin}-{end - 1}", "Accept-Encoding": "identity"}
        answer = requests.get(self._address, headers=headers, timeout=TIMEOUT)
        answer.raise_for_status()
        if len(answer.content) != end - begin:
            raise requests.ConnectionError(f"{len(answer.content)} bytes instead of {end - begin}")
        return answer.content


def _may_pass(error: OSError) -> bool:
    """Whether an error is one of the connection or of a busy server."""
    status = error.response.status_code if isinstance(error, requests.HTTPError) else 0
    return isinstance(error, _LOST) or status == 429 or status >= 500


def buffered(file: RemoteFile) -> io.BufferedReader:
    """A remote file that is asked for a block at a time."""
    return io.BufferedReader(file, BLOCK)


def download(address: str, path: Path, remedy: str) -> None:
    """Fetch a file, unless it is there. What an earlier try has fetched of it is beside it, and is not fetched again.

    Raises InputError with the ``remedy``, at once if there is no connection to begin with.
    """
    with locks.locked(path):
        if path.exists():
            return
        part = path.with_name(f".{path.name}.part")
        try:
            with part.open("ab") as written:
                _append(address, written, path.name)
        except requests.RequestException as error:
            raise InputError(address, f"cannot be downloaded ({error})", remedy) from None
        part.replace(path)


def _append(address: str, written: BinaryIO, name: str) -> None:
    """Fetch what a file lacks that may hold the beginning already."""
    found = requests.head(address, allow_redirects=True, timeout=TIMEOUT, headers={"Accept-Encoding": "identity"})
    found.raise_for_status()
    size = int(found.headers["Content-Length"])
    source = RemoteFile(address, size)
    there = source.seek(written.tell()) // _MB
    with progress(total=size // _MB, description=name, unit="MB", initial=there) as bar:
        while content := source.read(BLOCK):
            written.write(content)
            bar.update(source.tell() // _MB - bar.n)
