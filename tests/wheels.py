"""The library as others install it: as a wheel, without the packages of the workflow."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COPIED = ("src", "config", "pyproject.toml", "README.md", "LICENSE", "config.yaml")


def build(folder: Path) -> Path:
    """The wheel, as `python -m build` makes it: of what the source archive has."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("*.egg-info"))
        else:
            shutil.copy(ROOT / name, folder)
    shutil.unpack_archive(folder / _built("sdist", folder), folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked / _built("wheel", unpacked)


def _built(kind: str, folder: Path) -> str:
    program = f"from setuptools import build_meta; print(build_meta.build_{kind}('.'))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def oldest() -> list[str]:
    """The lower bounds of the library's packages, as exact versions."""
    return [re.sub(r">=([\d.]+).*", r"==\1", line) for line in PROJECT["dependencies"]]


def of_workflow() -> set[str]:
    """The modules that only the workflow's packages have."""

    def names(lines: list[str]) -> set[str]:
        return {re.match(r"[\w.-]+", line)[0] for line in lines}

    only = names(PROJECT["optional-dependencies"]["workflow"]) - names(PROJECT["dependencies"])
    others = {"setuptools"}  # which every environment has
    return {name.replace("unbabel-", "").replace("-", "_") for name in only - others}
