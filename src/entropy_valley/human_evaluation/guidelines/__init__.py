"""The guidelines that annotators follow: what the scales mean, how to choose, special cases; in English and Chinese.

Scales and rules are those of the paper's appendix and of its authors' guidelines, in our own words.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from entropy_valley.human_evaluation.pack import Pack

LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).parent


def text(pack: Pack, language: str) -> str:
    """The guidelines of a pack as Markdown, in one of LANGUAGES, with the hints for the language of its outputs."""
    said = _texts()[language]
    source, target = (said["languages"].get(code, code) for code in pack.direction.split("-"))
    hints = said["hints"].get(pack.direction.split("-")[1], [said["no_hints"]])
    return (
        (_FOLDER / f"{language}.md")
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


@cache
def _texts() -> dict[str, Any]:
    return json.loads((_FOLDER / "texts.json").read_text(encoding="utf-8"))
