"""Lets no Python process of a run reach the network: a ``sitecustomize.py`` that refuses it, and notes who tried."""

from __future__ import annotations

import os
from pathlib import Path

HOOK = """
import os, socket, sys

FOLDER, HERE = os.path.dirname(__file__), ("", None, "localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname())

def note(file, line):
    with open(f"{FOLDER}/{file}", "a") as notes:
        notes.write(f"{line}: {' '.join(sys.orig_argv)}\\n")

def refuse(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        host = arguments[1][0] if isinstance(arguments[1], tuple) else None  # else a local socket's path
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if (host.decode() if isinstance(host, bytes) else host) not in HERE:
        note("refused", f"{event} {host}")
        raise OSError(f"the network is asked for: {event} {host}")

note("watched", "started")
sys.addaudithook(refuse)
"""


class NoNetwork:
    """The hook in a folder, and what it has seen."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(HOOK)
        self._folder = folder
        self.environment = {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}

    def watched(self, script: str) -> bool:
        """Whether a process of this script ran with the hook."""
        return script in (self._folder / "watched").read_text()

    @property
    def refused(self) -> list[str]:
        """What asked for the network, and the command of its process."""
        notes = self._folder / "refused"
        return notes.read_text().splitlines() if notes.exists() else []
