"""The tests that pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_names_tests_that_are_there(page):
    named = set(re.findall(r"`([\w/]*test_\w+(?:\.py)?)`", page.read_text(encoding="utf-8")))
    files = {name for name in named if name.endswith(".py")}
    functions = {name for name in named - files if "/" not in name}
    assert [name for name in files if not (ROOT / name).is_file()] == [] == sorted(functions - TESTS)
