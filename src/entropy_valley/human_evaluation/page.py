"""The page that annotators may fill their form in on: one HTML file without a server and without a network.

Its texts are data of a script block and are set as text, never as HTML. It saves the same CSV as the form's.
"""

from __future__ import annotations

import html
from pathlib import Path

from markdown import markdown

from entropy_valley import files, pages
from entropy_valley.human_evaluation import forms, guidelines
from entropy_valley.human_evaluation.pack import Pack

_TEMPLATE = Path(__file__).with_name("page.html")


def write(path: Path, pack: Pack, annotator: str) -> None:
    """Write the page of an annotator, with both guidelines."""
    content = {
        "pack": pack.code,
        "direction": pack.direction,
        "annotator": annotator,
        "columns": forms.COLUMNS,
        "grades": forms.GRADES,
        "choices": forms.CHOICES,
        "rows": [forms.texts(row) for row in pack.rows],
        "file": f"{pack.direction}.{annotator}.csv",
    }
    title = f"Translations {pack.direction}, annotator {annotator}"
    parts = {"TITLE": html.escape(title)}
    parts |= {f"GUIDELINES_{name.upper()}": _guidelines(pack, name) for name in guidelines.LANGUAGES}
    files.write_text(path, pages.filled(_TEMPLATE, content, **parts))


def _guidelines(pack: Pack, language: str) -> str:
    """As HTML, its headings below those of the page."""
    return (
        markdown(guidelines.text(pack, language), extensions=["sane_lists"]).replace("h2>", "h3>").replace("h1>", "h2>")
    )
