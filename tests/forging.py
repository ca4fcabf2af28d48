"""Changes of a folder of results, and records that are made to fit them; a pickle that runs code."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.results import ENDING, HEADERS


class Hostile:
    """Unpickled, it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def changed(path: Path, change: Callable[[Any], Any], **row: Any) -> None:
    """Change the first row of a file that has these values, or else its whole text."""
    lines = path.read_text(encoding="utf-8").split("\n")
    if row:
        at = next(at for at, line in enumerate(lines) if row.items() <= json.loads(line).items())
        lines[at] = json.dumps(change(json.loads(lines[at])), ensure_ascii=False)
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        before = "\n".join(lines)
        after = change(before)
        assert after != before
        path.write_text(after, encoding="utf-8")


def swapped(one: Path, other: Path) -> None:
    """Exchange two folders."""
    one.rename(one.with_name("between"))
    other.rename(one)
    one.with_name("between").rename(other)


def edited(pattern: str, replacement: str) -> Callable[[str], str]:
    """A change of the first match of a text."""
    return lambda text: re.sub(pattern, replacement, text, count=1, flags=re.M)


def sealed(root: Path, former: str) -> None:
    """Let all records have the digests of the files that are there: what changes a result changes these, too.
    ``former`` is how records call the folder."""
    places = [path for path in root.rglob("*.json") if path.name.endswith(ENDING) or path.name in HEADERS]
    for place in sorted(places, key=lambda path: path.name.endswith(ENDING)):  # tables read headers
        record = json.loads(place.read_text(encoding="utf-8"))
        for name, written in record["outputs"].items():
            if name != place.name and (place.parent / name).is_file():
                written["digest"] = files.file_digest(place.parent / name)
        for path in record["inputs"]:
            if (file := root / path.removeprefix(f"{former}/")).is_file():
                record["inputs"][path] = files.file_digest(file)
        if "digest" in record:  # its own, of all else
            record["digest"] = files.digest({key: value for key, value in record.items() if key != "digest"})
        files.write_json(place, record)
