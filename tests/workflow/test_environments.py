"""The conda environments of the stages against the lock, and against what the stages import."""

from __future__ import annotations

import ast
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "entropy_valley"
ROOMS = {
    "corpus": ["corpus"],
    "training": ["backbone", "training"],
    "decoding": ["backbone", "canvas", "decoding"],
    "scoring": ["scoring"],
    "analysis": ["analysis", "reporting"],
}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.split("[")[0]).lower()


def pins(text: str) -> dict[str, str]:
    return {canonical(name): version for name, version in re.findall(r"([A-Za-z0-9._\[\]-]+)==([^\s\",]+)", text)}


def environment(stage: str) -> dict[str, str]:
    content = yaml.safe_load((ROOT / "envs" / f"{stage}.yaml").read_text())
    return pins("\n".join(content["dependencies"][-1]["pip"]))


LOCK = pins((ROOT / "requirements.lock").read_text())
PROJECT = pins((ROOT / "pyproject.toml").read_text())
DISTRIBUTIONS = metadata.packages_distributions()  # reads what every distribution holds: seconds


def test_every_environment_belongs_to_a_stage():
    assert {path.stem for path in (ROOT / "envs").iterdir()} == set(ROOMS)


@pytest.mark.parametrize("stage", ROOMS)
def test_pins_are_the_locks(stage):
    expected = {**LOCK, "torch": PROJECT["torch"]}
    assert environment(stage) == {name: expected[name] for name in environment(stage)}


@pytest.mark.parametrize("stage", ROOMS)
def test_what_a_stage_imports_is_in_its_environment(stage):
    paths = [
        *PACKAGE.glob("*.py"),
        *(path for room in ["config", *ROOMS[stage]] for path in (PACKAGE / room).rglob("*.py")),
    ]
    needed = {name for path in paths for name in third_party(path)}
    assert needed - environment(stage).keys() == set()


def third_party(path: Path) -> set[str]:
    """Distributions that a file imports, at its top or later."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    names = {module.split(".")[0] for module in modules} - sys.stdlib_module_names - {"entropy_valley"}
    return {canonical(DISTRIBUTIONS[name][0]) for name in names}


def test_the_lock_holds_the_projects_pins_and_no_torch():
    assert "torch" not in LOCK
    assert {name: version for name, version in PROJECT.items() if name != "torch"}.items() <= LOCK.items()


def test_the_lock_is_whole_and_portable():
    text = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=\w)", text.split("\n", 1)[1])
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|file:|^-", text, flags=re.MULTILINE)
