"""What DEPENDENCIES.md and LICENCES.md say of the packages is what the code imports and the lock pins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import licences
import pytest

ROOT = licences.ROOT
SOURCES = [path for folder in ("src", "workflow") for path in (ROOT / folder).rglob("*.py")]
MODULES = {"pyyaml": "yaml", "unbabel-comet": "comet"}  # of packages with another name
TABLE = (ROOT / "DEPENDENCIES.md").read_text(encoding="utf-8").split("## ")[1]
ROWS = dict(re.findall(r"^\| ([\w.-]+) \| [^|]+ \| ([^|]+) \|$", TABLE, re.MULTILINE))


def direct() -> set[str]:
    """The packages that `pyproject.toml` asks for, but those of tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    further = [lines for extra, lines in project["optional-dependencies"].items() if extra != "test"]
    return {re.match(r"[\w.-]+", line)[0] for line in sum(further, project["dependencies"])}


def imports(path: Path, package: str) -> bool:
    module = MODULES.get(package, package)
    return bool(re.search(rf"^ *(import|from) {module}\b", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_direct_dependency_has_a_row():
    assert direct() == ROWS.keys() - {"package"}


@pytest.mark.parametrize("package", sorted(direct()))
def test_a_package_is_imported_where_its_row_says_or_is_a_program(package):
    if re.match("program|plugin|pin", ROWS[package]):
        return
    files = [ROOT / "src/entropy_valley" / name for name in re.findall(r"`([^`]+\.py)`", ROWS[package])]
    assert files and all(imports(path, package) for path in files)


def test_every_locked_package_is_listed_with_its_version_and_licence():
    listed = licences.PAGE.read_text(encoding="utf-8")
    assert listed == licences.page(), "run `make licences`"
    locked = re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert licences.pinned().items() - set(locked) == {("torch", licences.pinned()["torch"])}
    assert len(licences.pinned()) == len(locked) + 1 and "not stated" not in listed
