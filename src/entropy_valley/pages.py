"""A page of HTML that needs no other file: a template with data in it, which its script shows as text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def filled(template: Path, data: Any, **parts: str) -> str:
    """The template with each ``@NAME@`` as the part of that name, which is HTML, and ``@DATA@`` as ``data`` in JSON.

    Nothing in the data ends the script block that they stand in.
    """
    texts = {**parts, "DATA": _embedded(data)}
    return re.sub(r"@([A-Z_]+)@", lambda found: texts[found[1]], template.read_text(encoding="utf-8"))


def _embedded(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
