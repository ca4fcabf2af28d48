"""What may happen to a job on a cluster, and to Snakemake, on a real SLURM: `make test-cluster`."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from slurm_cluster import NEEDS_SLURM, OFTEN
from workspace import Retraining, Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM]

PROFILE = ["--profile", "slurm"]
QUICK = [*PROFILE, "--set-threads", "train=1", *OFTEN]
DIVERGING = """
from entropy_valley.runs.job import job_of

if snakemake.wildcards.seed == "1":
    with job_of(snakemake):
        from entropy_valley.training.log import require_finite

        require_finite({"loss": float("nan")}, 1, 8, snakemake.output[0])
"""


# More than its first attempt has, for as long as SLURM needs to see it.
HUNGRY = """
import time

if snakemake.resources.mem_mb == 1000:  # the first attempt
    held = bytearray(1_500_000_000)
    held[::4096] = b"1" * len(held[::4096])
    time.sleep(60)
"""


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

    def submit_head(self):
        """Snakemake as a job; its number."""
        folder, configs = self.workspace.folder, self.workspace.config_files(self.retraining.over)
        command = [f"{folder}/profiles/slurm/head.sh", *QUICK[2:], self.retraining.target, "--configfile", *configs]
        self.cluster.run("sbatch", "--partition=cpu", f"--chdir={folder}", *command)
        return self.jobs()[0].id

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

    def freeze(self):
        """Keep the training from ending before SLURM ends it; whether it had processes."""
        processes = self.processes()
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        return bool(processes)

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


def test_a_job_that_nears_its_time_limit_saves_and_requeues_itself(training):
    """All its processes save after the same step: the first, because the job may run for a second only."""
    training.retraining.over = {"training": Retraining.over["training"] | {"processes": 2}}
    process = training.start("--set-resources", "train:runtime=10", "train:requeue_before=599")
    training.cluster.until(lambda: [job.restarts for job in training.jobs()] == [1], 300)
    (job,) = training.jobs()
    training.cluster.run("scontrol", "update", f"JobId={job.id}", "TimeLimit=60")
    assert "Trying to restart job" not in ended(process)
    (job,) = training.jobs()
    assert (job.state, job.restarts) == ("COMPLETED", 1)
    assert training.retraining.went_on()


def test_after_snakemake_is_killed_its_jobs_run_on_and_the_documented_recovery_works(training):
    process = training.begun()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert training.states() == ["RUNNING"]
    training.freeze()
    training.unlock()
    said = training.run(fails=True)
    assert "error: SLURM: 1 jobs of an earlier run of this folder are in the queue" in said, said
    training.cluster.run(*re.search("scancel --name=[-0-9a-f]+", said)[0].split())
    training.cluster.until(lambda: training.states() == ["CANCELLED"] and not training.processes())
    assert training.retraining.is_unfinished()
    training.run()
    assert training.retraining.went_on()


def test_a_head_in_a_job_goes_on_after_a_lost_node_and_near_its_time_limit(training):
    head = training.submit_head()
    training.cluster.until(training.retraining.is_unfinished)
    training.cluster.kill(head)
    training.cluster.until(lambda: training.states() == ["FAILED", "RUNNING"])
    training.freeze()
    training.cluster.run("scontrol", "requeue", head)
    training.cluster.until(lambda: training.states() == ["RUNNING", "CANCELLED", "RUNNING"] and training.freeze())
    training.cluster.run("scancel", "--batch", "--signal=USR1", head)  # as SLURM does before the limit
    training.cluster.until(lambda: training.states() == ["COMPLETED", "CANCELLED", "CANCELLED", "COMPLETED"])
    assert training.jobs()[0].restarts == 2
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


def test_a_job_that_hangs_until_its_time_limit_is_submitted_again_and_resumes(training):
    """SLURM ends it at a limit of a minute; the second attempt has as long, and needs less."""
    process = training.begun()
    training.freeze()
    training.cluster.run("scontrol", "update", f"JobId={training.jobs()[0].id}", "TimeLimit=1")
    training.cluster.until(lambda: "TIMEOUT" in training.states())
    assert "TIMEOUT" in ended(process)
    assert training.states() == ["TIMEOUT", "COMPLETED"] and training.retraining.went_on()


def test_a_job_out_of_memory_is_submitted_again_with_twice_as_much(cluster, tmp_path):
    workspace = Workspace(tmp_path, "config.yaml", {"tables": {"studies": []}, "check": False})
    script, before = tmp_path / "workflow/scripts/tokens.py", {job.id for job in cluster.jobs()}
    script.write_text(HUNGRY + script.read_text())
    given = ["--default-resources", "mem_mb=1000*attempt", "runtime=5"]
    target = "results/corpus/en-zh/length_ratios.json"
    said = workspace.run(*QUICK, target, *given, environment=cluster.environment)
    assert "exceeded memory limit" in said, said
    states = [(job.state, job.rule) for job in cluster.jobs() if job.id not in before and job.rule == "length_ratios"]
    assert sorted(states) == [("COMPLETED", "length_ratios"), ("FAILED", "length_ratios")]


def test_after_sigterm_snakemake_waits_for_its_jobs_and_submits_no_more(training):
    process = training.begun()
    os.kill(process.pid, signal.SIGTERM)
    said, _ = process.communicate()
    assert process.returncode != 0 and "Will exit after finishing currently running jobs" in said, said
    assert training.states() == ["COMPLETED"] and training.retraining.is_finished()
    training.run()
    assert training.states() == ["COMPLETED"]


def test_a_training_that_diverges_is_submitted_twice_and_stops_only_what_needs_it(cluster, tmp_path):
    workspace = Workspace(tmp_path, "config.yaml", {"tables": {"studies": []}, "check": False})
    script, before = tmp_path / "workflow/scripts/train.py", {job.id for job in cluster.jobs()}
    script.write_text(DIVERGING + script.read_text())
    targets = [f"results/en-zh/llada-8b/seed{seed}/adapter/adapter.json" for seed in (1, 2)]
    said = workspace.run(*QUICK, *targets, environment=cluster.environment, fails=True)
    assert "error: results/en-zh/llada-8b/seed1/adapter/adapter.json: the loss is not finite at step 2 of 8" in said
    assert [Path(tmp_path, target).exists() for target in targets] == [False, True]
    states = sorted(job.state for job in cluster.jobs() if job.id not in before and job.rule == "train")
    assert states == ["COMPLETED", "FAILED", "FAILED"]
