"""Pages for a browser, each one file that needs no other: the matrix, and the sentences of a test set."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from entropy_valley import files, pages

_FOLDER = Path(__file__).parent


def write(path: str | Path, name: str, title: str, data: Any) -> None:
    """Write the page of the template ``name`` with its ``data``."""
    style = (_FOLDER / "common.css").read_text(encoding="utf-8")
    files.write_text(path, pages.filled(_FOLDER / f"{name}.html", data, TITLE=escape(title), STYLE=style))
