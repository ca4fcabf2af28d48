"""Write the licences of all packages of `requirements.lock`, and of torch, below the text of `LICENCES.md`.

`python .ci/licences.py`, in the environment of `make install`. A package states its licence as an expression, as
classifiers, or in a line of text; for those that state none, it is the title of their licence file.
"""

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "LICENCES.md"
HEAD = "| package | version | licence |\n|---|---|---|\n"


def pinned() -> dict[str, str]:
    """The version of each package."""
    locked = re.findall(r'^\s*"?([\w.-]+)==([\w.]+)', (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return dict(sorted([*locked, *re.findall(r'"(torch)==([\w.]+)"', (ROOT / "pyproject.toml").read_text())]))


def licence(package: Distribution) -> str:
    """The licence of an installed package, in its own words."""
    metadata = package.metadata
    classifiers = [line for line in metadata.get_all("Classifier", []) if line.startswith("License :: ")]
    listed = "; ".join(line.split(" :: ")[-1] for line in classifiers if not line.endswith("OSI Approved"))
    text = (metadata.get("License") or "").strip()
    return metadata.get("License-Expression") or listed or ("" if "\n" in text else text) or _title(package)


def _title(package: Distribution) -> str:
    """The first line of the licence file."""
    paths = [path for path in package.files or [] if re.match(r"licen[cs]e|copying", path.name, re.IGNORECASE)]
    lines = paths[0].read_text().split("\n") if paths else []
    return next((line.strip() for line in lines if line.strip()), "not stated")


def page() -> str:
    """The page: its text as it is, and the table made anew."""
    text = PAGE.read_text(encoding="utf-8").partition(HEAD)[0]
    rows = (f"| {name} | {version} | {licence(distribution(name))} |\n" for name, version in pinned().items())
    return text + HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
