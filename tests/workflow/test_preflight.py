"""What a run on SLURM says before anything is submitted, with commands that answer as SLURM does."""

from __future__ import annotations

import pytest
from workspace import Workspace

pytestmark = pytest.mark.slow

NODES = "cpu|c1|64|256000|(null)|(null)\ngpu|g1|64|512000|gpu:a100:8(S:0-1)|(null)"
PARTITIONS = """PartitionName=cpu Default=YES MaxTime=1-00:00:00 State=UP
PartitionName=gpu Default=NO MaxTime=04:00:00 State=UP"""
ANSWERS = {
    "scontrol": f'case "$*" in *partition) echo "{PARTITIONS}";; *) echo "MinJobAge = 300 sec";; esac',
    "sinfo": f'echo "{NODES}"',
    "sacctmgr": 'case "$*" in *qos*) echo "normal|||||";; *) echo "nlp||normal|normal";; esac',
    "sacct": "true",
    "squeue": "true",
    "sbatch": 'case "$*" in *--test-only*) ;; *) touch submitted; echo 1;; esac',
}
TARGET = "results/en-zh/llada-8b/seed1/adapter/adapter.json"
COMMAND = ["--profile", "slurm", TARGET, "--jobs", "4", "--slurm-init-seconds-before-status-checks", "1"]


@pytest.fixture
def cluster(tmp_path):
    """The paper's settings, and a SLURM that would never start a job."""
    workspace = Workspace(tmp_path, "config.yaml", {"tables": {"studies": []}})
    for name, answer in ANSWERS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return workspace


def set_profile(cluster, *changes):
    path = cluster.folder / "profiles/slurm/config.yaml"
    text = path.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)


def test_everything_that_would_never_run_is_said_before_anything_is_submitted(cluster):
    more = [("# slurm_account: mine", "  slurm_account: mine"), ("min(200000 * attempt, 400000)", "300000 * attempt")]
    set_profile(cluster, *more, ("runtime: 240 ", "runtime: 300 "))
    said = cluster.run(*COMMAND, fails=True)
    assert "nothing was submitted" in said
    assert "has no account mine; there is nlp. Set one of these in profiles/slurm/config.yaml" in said
    assert "rule train: requests 300 minutes, partition gpu grants 240. Set runtime: 240" in said
    assert "Submitted" not in said
    assert not any((cluster.folder / name).exists() for name in ("submitted", "results/corpus"))


def test_a_job_that_cannot_be_submitted_fails_instead_of_being_waited_for(cluster):
    """The plugin refuses an option of its own in `slurm_extra` only when it submits."""
    set_profile(
        cluster,
        ("  nodes: 1", "  nodes: 1\n  slurm_extra: '\"--mem=1\"'"),
        ("preemptible-retries: 6", "preemptible-retries: 0"),
    )
    said = cluster.run(*COMMAND, fails=True)
    assert "not submitted to SLURM" in said
    assert "option is not allowed in the 'slurm_extra'" in said
