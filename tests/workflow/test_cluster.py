"""What may happen to a job on a cluster, on a real SLURM: `make test-cluster`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from slurm_cluster import NEEDS_SLURM, QUICK, ended
from workspace import Retraining, Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM]

DIVERGING = """
from entropy_valley.experiment.runs.job import job_of

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


def test_the_check_is_a_job_and_what_slurm_refuses_is_said(cluster, tmp_path):
    smallest = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", real=True)
    smallest.run(*QUICK, "--force", "check", environment=cluster.environment)
    found = tmp_path / "results/smallest/check.txt"
    assert re.search(r"^ok +training .*\n(.*\n)*ok +decoding llada-tiny", found.read_text(), re.MULTILINE)
    partitions = tmp_path / "profiles/slurm/partitions.yaml"
    partitions.write_text(partitions.read_text().replace("  cpu:", "  elsewhere:"))
    said = smallest.run(*QUICK, "--force", "check", environment=cluster.environment, fails=True)
    assert "failed: check" in said and "invalid partition specified: elsewhere" in said, said
