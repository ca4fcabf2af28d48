"""Pages for a browser, each one file that needs no other: a table, the matrix, the sentences of a test set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from entropy_valley import files
from entropy_valley.plain_text import shown

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, keep_trailing_newline=True
)
TEMPLATES.filters["shown"] = shown
TEMPLATES.policies["json.dumps_kwargs"] = {"ensure_ascii": False}  # Chinese takes half the bytes


def write(path: str | Path, name: str, title: str, data: Any) -> None:
    """Write the page of the template ``name``: texts in ``data``, a JSON value, are never read as HTML."""
    files.write_text(path, TEMPLATES.get_template(f"{name}.html").render(title=title, data=data))
