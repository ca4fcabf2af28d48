"""Print the licences of all packages of `requirements.lock`, and of torch, as `docs/licences.md` has them.

`python docs/licences.py > docs/licences.md`, in the environment of `make install`. A package says its licence as an
expression, as classifiers, or in a line of text; for those that say nothing, it is the title of their licence file.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAD = """# Licences

Of each package that `make install` brings, as the package itself states it; made by `docs/licences.py`.
[dependencies.md](dependencies.md) says what follows from them.

| package | version | licence |
|---|---|---|
"""


def pinned() -> dict[str, str]:
    """The version of each package."""
    found = re.findall(r'^\s*"?([\w.-]+)==([\w.]+)', (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return dict(sorted([*found, *re.findall(r'"(torch)==([\w.]+)"', (ROOT / "pyproject.toml").read_text())]))


def licence(package: Distribution) -> str:
    """The licence of an installed package, in its own words."""
    said = package.metadata
    classifiers = [line for line in said.get_all("Classifier", []) if line.startswith("License :: ")]
    named = "; ".join(line.split(" :: ")[-1] for line in classifiers if not line.endswith("OSI Approved"))
    text = (said.get("License") or "").strip()
    return said.get("License-Expression") or named or ("" if "\n" in text else text) or _title(package)


def _title(package: Distribution) -> str:
    """The first line of the licence file."""
    paths = [path for path in package.files or [] if re.match(r"licen[cs]e|copying", path.name, re.IGNORECASE)]
    lines = paths[0].read_text().split("\n") if paths else []
    return next((line.strip() for line in lines if line.strip()), "not stated")


def page() -> str:
    """The whole page."""
    rows = (f"| {name} | {version} | {licence(distribution(name))} |\n" for name, version in pinned().items())
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(page(), end="")
