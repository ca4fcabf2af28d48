"""The check of what a SLURM grants, on a real one with a database of accounts: `make test-cluster`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from slurm_cluster import NEEDS_DATABASE, NEEDS_SLURM, started
from workspace import Workspace

ONE_WORKER = pytest.mark.xdist_group("check")  # a database takes long to start
pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM, NEEDS_DATABASE, ONE_WORKER]


@pytest.fixture(scope="module")
def cluster():
    with started(MINISLURM_DATABASE="1") as cluster:
        yield cluster


@pytest.fixture
def check(cluster, tmp_path, monkeypatch):
    """`entropy-valley check --profile slurm` in a copy of the repository: its exit status and lines."""
    Workspace(tmp_path, "config.yaml")
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)

    def run():
        command = [sys.executable, "-m", "entropy_valley", "check", "--profile", "slurm"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def test_drained_nodes_are_no_error_of_the_check(cluster, check):
    node = f"NodeName={cluster.run('sinfo', '--noheader', '--format=%n').strip()}"
    cluster.run("scontrol", "update", node, "State=DRAIN", "Reason=test")
    try:
        status, said = check()
    finally:
        cluster.run("scontrol", "update", node, "State=RESUME")
    train = next(line for line in said.splitlines() if line.split()[1:2] == ["train"])
    assert status == 0 and "; its nodes are drained now: jobs will wait" in train, said


def test_what_the_cluster_does_not_grant_is_said_by_the_check(cluster, check, tmp_path):
    before = [job.id for job in cluster.jobs()]
    status, said = check()
    assert status == 0, said
    profile = tmp_path / "profiles/slurm/config.yaml"
    text = profile.read_text()
    assert "# slurm_account: mine" in text
    profile.write_text(text.replace("# slurm_account: mine", "  slurm_account: nobodys"))
    status, said = check()
    train = next(line for line in said.splitlines() if line.split()[:2] == ["failed", "train"])
    assert status == 1 and "Invalid account" in train and "correct slurm_account (profiles/slurm/config.yaml)" in train
    profile.write_text(text)
    cluster.run("scontrol", "update", "PartitionName=gpu", "MaxTime=30")
    try:
        status, said = check()
    finally:
        cluster.run("scontrol", "update", "PartitionName=gpu", "MaxTime=UNLIMITED")
    train = next(line for line in said.splitlines() if line.split()[:2] == ["failed", "train"])
    assert status == 1 and re.search("partition gpu grants .*30.*: set `max_runtime: 30`", train), train
    profile.write_text(text.replace("# gpu_model: h100 ", "  gpu_model: h100 "))
    status, said = check()
    assert status == 1 and "Requested node configuration is not available`: lower mem_mb" in said
    assert {job.id for job in cluster.jobs()} <= {*before}  # SLURM forgets finished jobs after a while
