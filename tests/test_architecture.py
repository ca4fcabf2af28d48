"""docs/architecture.md has one line for each file of the package and of the workflow, and no other line."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

PAGE = Path("docs/architecture.md").read_text(encoding="utf-8")
PACKAGE, WORKFLOW = (
    section.split("```\n")[1] for section in PAGE.split("## The files of the package\n")[1].split("## The workflow\n")
)


def listed_modules():
    """The files of the list. A line that is not indented names a room; the lines below it name its files."""
    room, modules = "", []
    for line in PACKAGE.splitlines():
        name = line.split()[0]
        if line.startswith("  "):
            modules.append(room + name)
        else:
            room = name if name.endswith("/") else ""
    return modules


def modules():
    """Every module, except ``__init__.py`` files without code."""
    root = Path("src/entropy_valley")
    return [str(path.relative_to(root)) for path in root.rglob("*.py") if path.name != "__init__.py" or _code(path)]


def _code(path):
    return [node for node in ast.parse(path.read_text(encoding="utf-8")).body if not isinstance(node, ast.Expr)]


def files_of_the_workflow():
    kinds = ("rules/*.smk", "scripts/*.py")
    return ["Snakefile", *(str(path) for kind in kinds for path in Path("workflow").glob(kind))]


@pytest.mark.parametrize(
    ("listed", "there"),
    [(listed_modules(), modules()), ([line.split()[0] for line in WORKFLOW.splitlines()], files_of_the_workflow())],
    ids=["package", "workflow"],
)
def test_every_file_has_one_line_and_no_other_is_listed(listed, there):
    assert sorted(listed) == sorted(there)


def test_the_order_of_the_rooms_is_the_contract():
    """The page has the rooms in the order that the linter checks."""
    (walk,) = re.findall(r"^corpus → .*$", PAGE, re.MULTILINE)
    contract = re.findall(r'^  "entropy_valley\.(\w+)', Path("pyproject.toml").read_text(), re.MULTILINE)
    rooms = walk.split(" → ")
    assert rooms == [room for room, _ in itertools.groupby(reversed(contract)) if room in rooms]
