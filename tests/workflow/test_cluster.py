"""What may happen to a job on a cluster, on a real SLURM with a database of accounts: `make test-cluster`."""

from __future__ import annotations

import os
import re
import signal
from getpass import getuser
from pathlib import Path

import pytest
from slurm_cluster import NEEDS_DATABASE, NEEDS_SLURM, started
from workspace import Retraining, Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM, NEEDS_DATABASE]

PROFILE = ["--profile", "slurm"]
QUICK = [*PROFILE, "--set-threads", "train=1", "--slurm-init-seconds-before-status-checks", "5"]
SMALLEST = ("config/demo.yaml", "config/smallest.yaml")


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

    def logs(self):
        """The names of its logs."""
        log = self.retraining.log
        return sorted(path.name.removeprefix(log.stem) for path in log.parent.glob(f"{log.stem}*"))

    def processes(self):
        """The processes of the training, wherever they are started."""
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and self._is_training(path)]

    def _is_training(self, process):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            return b"workflow/scripts/train.py" in command and (process / "cwd").readlink() == self.workspace.folder
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
    assert training.logs() == [".1.log", ".log"]
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


def test_jobs_that_run_at_once_see_gpus_of_their_own(cluster, tmp_path):
    over = {"matrix": {"seeds": [1, 2, 3]}, "tables": {"studies": []}, "training": {"processes": 2}}
    workspace = Workspace(tmp_path, "config.yaml", over)
    workspace.note_gpus(3, "train", "inference")
    targets = [f"results/en-zh/llada-8b/seed{seed}/wmt22/ratio/med-T32/hypotheses.jsonl" for seed in (1, 2, 3)]
    workspace.run(*QUICK, *targets, environment=cluster.environment)
    for script, count in (("train", 2), ("inference", 1)):
        seen = workspace.gpus_seen(script)
        assert [len(gpus) for gpus in seen] == [count] * 3
        assert len({gpu for gpus in seen for gpu in gpus}) == 3 * count, seen


def test_what_the_cluster_does_not_grant_is_said_before_anything_is_submitted(training):
    profile = training.workspace.folder / "profiles/slurm/config.yaml"
    text = profile.read_text()
    assert "# slurm_account: mine" in text
    profile.write_text(text.replace("# slurm_account: mine", "  slurm_account: nobodys"))
    training.cluster.run("scontrol", "update", "PartitionName=cpu", "MaxTime=30", "PreemptMode=CANCEL")
    try:
        said = training.run(fails=True)
    finally:
        training.cluster.run("scontrol", "update", "PartitionName=cpu", "MaxTime=UNLIMITED", "PreemptMode=REQUEUE")
    assert re.search("has no account nobodys; there is .*project", said)
    assert "rule train: requests 240 minutes, partition cpu grants 30" in said
    assert "PreemptMode=CANCEL" in said
    assert not training.jobs()
