"""Jobs under an executor that is not ours."""

from __future__ import annotations

import json

import pytest
from workspace import Workspace

SMALL = {
    "check": False,  # this machine has no GPU
    "matrix": {"backbones": ["llada-8b"], "directions": ["en-zh"], "seeds": [1]},
    "instruct": {"backbones": []},
    "autoregressive": {"backbones": []},
    "tables": {"studies": []},
}


# Writes which params a job was given.
TELLING = """
from pathlib import Path

for path in snakemake.output:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(snakemake.params.spec)
"""
SUBMIT = """#!/bin/sh
echo $$ | tee -a submitted
{ while [ ! -e edited ]; do sleep 0.1; done; sh $1; } > $1.log 2>&1 &
"""


@pytest.mark.cluster  # each job starts a Snakemake of its own
def test_a_config_that_is_edited_while_jobs_wait_changes_nothing(tmp_path):
    workspace = Workspace(tmp_path, "config.yaml", SMALL)
    for script in (tmp_path / "workflow/scripts").glob("*.py"):
        script.write_text(TELLING)
    config, ratios = tmp_path / "config.yaml", "en-zh: [0.70, 0.75,"
    before = config.read_text()
    assert ratios in before
    target = "results/en-zh/llada-8b/seed1/matrix/translations.jsonl"
    workspace.finish(target)
    (tmp_path / "submit.sh").write_text(SUBMIT)
    (tmp_path / "submit.sh").chmod(0o755)
    options = "--executor cluster-generic --cluster-generic-submit-cmd ./submit.sh --seconds-between-status-checks 1"
    (tmp_path / target).unlink()
    process = workspace.start(*options.split(), "--jobs", "2", target)
    while not (tmp_path / "submitted").exists():
        assert process.poll() is None, process.stdout.read()
    config.write_text(before.replace(ratios, "en-zh: [0.65, 0.75,"))
    (tmp_path / "edited").touch()
    text, _ = process.communicate()
    assert process.returncode == 0, text
    spec = json.loads((tmp_path / target).read_text())
    assert "[0.7,0.75," in json.dumps(spec, separators=(",", ":"))
    assert workspace.planned(target).keys() == {"translate en-zh.llada-8b.1.matrix"}
    config.write_text(before)
    assert not workspace.planned(target)
