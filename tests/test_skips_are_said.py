"""What is skipped is named at the end of a run, in one line before pytest's own last one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.mark.skipif(True, reason="needs slurm-wlm and munge")
@pytest.mark.parametrize("number", [1, 2])
def test_cluster(number): ...

def test_fragment():
    pytest.skip("no pdflatex")

def test_here(): ...
"""


@pytest.mark.parametrize("options", [["-p", "no:xdist"], ["-n", "1"]], ids=["in one process", "by workers"])
def test_one_line_says_what_was_skipped_and_why(tmp_path, options):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, *options, tmp_path]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    *_, skipped, last = done.stdout.splitlines()
    assert skipped == "skipped: needs slurm-wlm and munge (2); no pdflatex (1)", done.stdout + done.stderr
    assert re.match(r"1 passed, 3 skipped in ", last)
