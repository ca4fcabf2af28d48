"""The workflow runs, and plans what a change touches, on the oldest Snakemake that it takes and on the newest one.

Both are installed from the package index, beside the tests' own: `make nightly` has this test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from workspace import ROOT, Workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ENTROPY_VALLEY_NIGHTLY" not in os.environ, reason="ENTROPY_VALLEY_NIGHTLY is not set"),
]
OLDEST = re.search(r'min_version\("(.*)"\)', (ROOT / "Snakefile").read_text())[1]
MAIN = "results/smallest/tables/main.tex"


@pytest.mark.parametrize("version", [f"=={OLDEST}", f">={OLDEST}"], ids=["oldest", "newest"])
def test_the_workflow_runs_and_plans(tmp_path, version):
    packages = tmp_path / "packages"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, f"snakemake{version}"], check=True
    )
    environment = {"PYTHONPATH": os.pathsep.join([str(packages), *filter(None, sys.path)])}
    workspace = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", {"check": False})

    def said(*arguments, over=None):
        return workspace.run(*arguments, over=over, environment=environment)

    used = said("--version").strip()
    print(f"Snakemake {used}")
    assert used.startswith(OLDEST) or version.startswith(">=")
    said("--cores", "2", MAIN)
    assert "Nothing to be done" in said("-n", MAIN)
    planned = said("-n", MAIN, over={"decoding": {"precision": "bfloat16"}})
    assert dict(re.findall(r"^(\w+) +(\d+) ", planned, re.MULTILINE)) == {"translate": "1", "score": "1", "table": "1"}
