"""The same rules under an executor that knows nothing of this project: a shell script takes the jobs."""

from __future__ import annotations

import json

import pytest
from workspace import Workspace

pytestmark = pytest.mark.slow

RUN = "results/en-zh/llada-8b/seed1"
NOT_EXPANDED = {"check": False, "tables": {"studies": []}}  # each job is a Snakemake of its own, which reads them all
# Says which params a job was given.
TELLING = """
from pathlib import Path

for path in snakemake.output:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(snakemake.params.spec)
"""
SUBMIT = "#!/bin/sh\necho $$ | tee -a submitted\n{ {WAIT} sh $1; } > $1.log 2>&1 &\n"


@pytest.fixture
def through_a_script():
    """Options that let a workspace run its jobs by a script, which first does what ``wait`` says."""

    def options(workspace, wait=""):
        submit = workspace.folder / "submit.sh"
        submit.write_text(SUBMIT.replace("{WAIT}", wait))
        submit.chmod(0o755)
        return ["--executor", "cluster-generic", "--cluster-generic-submit-cmd", "./submit.sh", "--jobs", "2"]

    return options


@pytest.mark.cluster
def test_the_smallest_matrix_runs_by_a_submit_script(tmp_path, through_a_script):
    workspace = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", real=True)
    scores = "results/smallest/en-zh/llada-tiny/seed1/matrix/scores.jsonl"
    workspace.run(*through_a_script(workspace), scores)
    rows = [json.loads(line) for line in (tmp_path / scores).read_text().splitlines()]
    assert {row["method"] for row in rows} >= {"oracle", "ratio", "ev"}
    assert len((tmp_path / "submitted").read_text().split()) == 5  # pretrain, train, train_comet, translate, score


def test_a_config_that_is_edited_while_jobs_wait_changes_nothing(tmp_path, through_a_script):
    workspace = Workspace(tmp_path, "config.yaml", NOT_EXPANDED)
    for script in (tmp_path / "workflow/scripts").glob("*.py"):
        script.write_text(TELLING)
    config, ratios = tmp_path / "config.yaml", "en-zh: [0.70, 0.75,"
    before = config.read_text()
    assert ratios in before
    process = workspace.start(
        *through_a_script(workspace, "while [ ! -e edited ]; do sleep 0.1; done;"), f"{RUN}/matrix/scores.jsonl"
    )
    while not (tmp_path / "submitted").exists():
        assert process.poll() is None, process.stdout.read()
    config.write_text(before.replace(ratios, "en-zh: [0.65, 0.75,"))
    (tmp_path / "edited").touch()
    said, _ = process.communicate()
    assert process.returncode == 0, said
    spec = json.loads((tmp_path / RUN / "matrix/translations.jsonl").read_text())
    assert "[0.7,0.75," in json.dumps(spec, separators=(",", ":"))
    assert workspace.planned(f"{RUN}/matrix/scores.jsonl").keys() >= {"translate en-zh.llada-8b.1.matrix"}
    config.write_text(before)
    assert not workspace.planned(f"{RUN}/matrix/scores.jsonl")
