"""What may happen to a job on a cluster, on a real SLURM with a database of accounts: `make test-cluster`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from getpass import getuser
from pathlib import Path

import pytest
from slurm_cluster import NEEDS_DATABASE, NEEDS_SLURM, started
from workspace import Retraining, Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM, NEEDS_DATABASE]

PROFILE = ["--profile", "slurm"]
QUICK = [*PROFILE, "--set-threads", "train=1", "--slurm-init-seconds-before-status-checks", "5"]
SMALLEST = ("config/demo.yaml", "config/smallest.yaml")
FAILING = """
from entropy_valley.runs.job import job_of

if snakemake.wildcards.seed == "1":
    with job_of(snakemake):
        raise ValueError("no seed 1")
"""


@pytest.fixture(scope="module")
def cluster():
    with started(MINISLURM_DATABASE="1") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The adapter of the smallest demo."""
    workspace = Workspace(tmp_path_factory.mktemp("trained"), *SMALLEST, real=True)
    workspace.run("--cores", "2", Retraining.target)
    return workspace


@pytest.fixture
def training(cluster, trained, tmp_path):
    """A training over that adapter, in a copy of its folder, and the job of the cluster that it will be."""
    return OnCluster(cluster, trained.copied(tmp_path / "copy"))


class OnCluster:
    """A retraining as a job of a cluster."""

    def __init__(self, cluster, workspace):
        self.cluster, self.workspace = cluster, workspace
        self.retraining = Retraining(workspace.folder)
        self._before = {job.id for job in cluster.jobs()}

    def start(self, *options):
        return self._call(self.workspace.start, *QUICK, self.retraining.target, *options)

    def run(self, *options, fails=False):
        return self._call(self.workspace.run, *QUICK, self.retraining.target, *options, fails=fails)

    def unlock(self):
        self._call(self.workspace.run, "--unlock", *PROFILE)

    def _call(self, call, *arguments, **options):
        return call(*arguments, over=self.retraining.over, environment=self.cluster.environment, **options)

    def begun(self, *options):
        """Snakemake, once the job has a checkpoint."""
        process = self.start(*options)
        self.retraining.begun(process)
        return process

    def jobs(self):
        """Its jobs of the cluster, the first one first."""
        return sorted((job for job in self.cluster.jobs() if job.id not in self._before), key=lambda job: int(job.id))

    def states(self):
        return [job.state for job in self.jobs()]

    def processes(self):
        """The processes of its script, and those that it has started, on any node."""
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and self._is_training(path)]

    def _is_training(self, process):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            ours = any(word.endswith(b"train.py") or b"entropy_valley.training" in word for word in command)
            return ours and (process / "cwd").readlink() == self.workspace.folder
        except OSError:  # it has ended
            return False


def ended(process):
    """What Snakemake said."""
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


def test_a_job_over_its_memory_is_submitted_again_with_more(training):
    memory = "300 if attempt == 1 else 8000"
    said = training.run("--set-resources", f"train:mem_mb={memory}")
    assert "Trying to restart job" in said
    assert training.states() == ["FAILED", "COMPLETED"]
    assert training.retraining.is_finished()


def test_a_job_over_its_time_is_submitted_again_and_resumes(training):
    """It hangs, as on a lost file system, until SLURM ends it."""
    process = training.begun("--set-resources", "train:runtime=attempt")
    for pid in training.processes():
        os.kill(pid, signal.SIGSTOP)
    said = ended(process)
    assert "'TIMEOUT'" in said
    assert training.states() == ["TIMEOUT", "COMPLETED"]
    assert training.retraining.went_on()


def test_a_job_on_a_lost_node_is_submitted_again_and_resumes(training):
    """It is killed with the Snakemake in it."""
    process = training.begun()
    training.cluster.run("scancel", "--full", "--signal=KILL", "--state=RUNNING", f"--user={getuser()}")
    assert training.retraining.is_unfinished()
    assert "Trying to restart job" in ended(process)
    assert training.retraining.went_on()


def test_ctrl_c_cancels_the_jobs_and_the_same_command_goes_on(training):
    process = training.begun()
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode != 0, said
    training.cluster.until(lambda: training.states() == ["CANCELLED"] and not training.processes())
    assert training.retraining.is_unfinished()
    training.run()
    assert training.retraining.went_on()


def test_after_snakemake_is_killed_its_jobs_run_on_and_the_documented_recovery_works(training):
    process = training.begun()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert training.states() == ["RUNNING"]
    training.cluster.run("scancel", f"--user={getuser()}")
    training.cluster.until(lambda: training.states() == ["CANCELLED"] and not training.processes())
    assert training.retraining.is_unfinished()
    training.unlock()
    training.run()
    assert training.retraining.went_on()


def test_a_preempted_training_is_queued_again_and_resumes(training):
    process = training.begun()
    urgent = ["--partition=urgent", "--exclusive", "--ntasks=16", "--output=/dev/null", "--wrap=sleep 2"]
    training.cluster.run("sbatch", *urgent)
    training.cluster.until(lambda: not training.processes())
    assert training.retraining.is_unfinished()
    ended(process)
    job, _ = training.jobs()
    assert (job.state, job.restarts) == ("COMPLETED", 1)
    assert training.retraining.went_on()


def test_a_cancelled_job_is_heard_of_and_submitted_again(training):
    """The plugin would wait for ever if it asked sacct, which says CANCELLED by whom."""
    process = training.begun()
    training.cluster.run("scancel", training.jobs()[0].id)
    assert "status is: 'CANCELLED'" in ended(process)
    assert training.states() == ["CANCELLED", "COMPLETED"]
    assert training.retraining.went_on()


def test_a_job_that_fails_each_time_is_told_with_its_log_and_stops_only_what_needs_it(cluster, tmp_path):
    workspace = Workspace(tmp_path, "config.yaml", {"tables": {"studies": []}, "check": False})
    script = tmp_path / "workflow/scripts/translate.py"
    script.write_text(FAILING + script.read_text())
    targets = [f"results/en-zh/llada-8b/seed{seed}/matrix/scores.jsonl" for seed in (1, 2)]
    options = [*QUICK, "--retries", "0", "--preemptible-retries", "0"]
    said = workspace.run(*options, *targets, environment=cluster.environment, fails=True)
    assert said.count("ValueError: no seed 1") == 1
    assert [Path(tmp_path, target).exists() for target in targets] == [False, True]


def test_jobs_that_run_at_once_see_gpus_of_their_own(cluster, tmp_path):
    over = {"tables": {"studies": []}, "training": {"processes": 2}, "check": False}
    workspace = Workspace(tmp_path, "config.yaml", over)
    workspace.note_gpus(3, "train", "translate")
    targets = [f"results/en-zh/llada-8b/seed{seed}/matrix/translations.jsonl" for seed in (1, 2, 3)]
    workspace.run(*QUICK, *targets, environment=cluster.environment)
    for rule, count in (("train", 2), ("translate", 1)):
        seen = workspace.gpus_seen(rule)
        assert [len(gpus) for gpus in seen] == [count] * 3
        assert len({gpu for gpus in seen for gpu in gpus}) == 3 * count, seen


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
    train = next(line for line in said.splitlines() if line[8:].startswith("train "))
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
    train = next(line for line in said.splitlines() if line.startswith("failed  train "))
    assert status == 1 and "Invalid account" in train and "correct slurm_account (slurm/config.yaml)" in train
    profile.write_text(text)
    cluster.run("scontrol", "update", "PartitionName=gpu", "MaxTime=30")
    try:
        status, said = check()
    finally:
        cluster.run("scontrol", "update", "PartitionName=gpu", "MaxTime=UNLIMITED")
    train = next(line for line in said.splitlines() if line.startswith("failed  train "))
    assert status == 1 and re.search("partition gpu grants .*30.*: set `max_runtime: 30`", train), train
    profile.write_text(text.replace("# gpu_model: h100 ", "  gpu_model: h100 "))
    status, said = check()
    assert status == 1 and "Requested node configuration is not available`: lower mem_mb" in said
    assert {job.id for job in cluster.jobs()} <= {*before}  # SLURM forgets finished jobs after a while
