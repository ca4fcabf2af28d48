"""What annotators read: the guidelines, and the page that they may fill their form in on.

Scales and rules of the guidelines are those of the paper's appendix and of its authors' guidelines, in our own words:
what the scales mean, how to choose, special cases; in English and Chinese.

The page is one HTML file without a server and without a network. Its texts are data of a script block and are set as
text, never as HTML. It saves the same CSV as the form's.
"""

from __future__ import annotations

import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markdown import markdown

from entropy_valley import files
from entropy_valley.human_evaluation import forms
from entropy_valley.human_evaluation.pack import LANGUAGES, Pack

_HERE = Path(__file__).parent


def guidelines(pack: Pack, language: str) -> str:
    """The guidelines of a pack as Markdown, in one of LANGUAGES, with the hints for the language of its outputs."""
    texts = json.loads((_HERE / "guidelines/texts.json").read_text(encoding="utf-8"))[language]
    codes = pack.direction.split("-")
    source, target = (texts["languages"].get(code, code) for code in codes)
    hints = texts["hints"].get(codes[1], [texts["no_hints"]])
    return (
        (_HERE / f"guidelines/{language}.md")
        .read_text(encoding="utf-8")
        .format(
            direction=f"{source} → {target}",
            source=source,
            target=target,
            rows=len(pack.rows),
            hints="\n".join(f"- {hint}" for hint in hints),
            file=f"{pack.direction}.…",
        )
    )


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
    texts = {  # as HTML, their headings below those of the page
        name: markdown(guidelines(pack, name), extensions=["sane_lists"]).replace("h2>", "h3>").replace("h1>", "h2>")
        for name in LANGUAGES
    }
    template = Environment(loader=FileSystemLoader(_HERE), autoescape=True).get_template("page.html")
    title = f"Translations {pack.direction}, annotator {annotator}"
    files.write_text(path, template.render(title=title, data=content, guidelines=texts))
