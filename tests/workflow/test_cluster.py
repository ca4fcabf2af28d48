"""What may happen to a job on a cluster, on a real SLURM: `make test-cluster`."""

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


@pytest.mark.timeout(900)  # four times a job begins, once it waits a minute for its end
def test_a_preempted_a_cancelled_and_a_hanging_job_resume(training):
    """One training meets all three: SLURM repeats the preempted job; the others are submitted again, once each.

    The plugin would wait for ever for a cancelled job if it asked sacct, which says CANCELLED by whom.
    """
    process = training.begun("--retries", "2")
    urgent = ["--partition=urgent", "--exclusive", "--ntasks=16", "--output=/dev/null", "--wrap=sleep 2"]
    training.cluster.run("sbatch", *urgent)
    training.cluster.until(lambda: not training.processes())
    assert training.retraining.is_unfinished()
    training.cluster.until(lambda: training.own()[0].restarts == 1 and training.freeze())
    training.cluster.run("scancel", training.own()[0].id)
    training.cluster.until(lambda: len(training.own()) == 2 and training.freeze())
    training.cluster.run("scontrol", "update", f"JobId={training.own()[1].id}", "TimeLimit=1")
    said = ended(process)
    assert "status is: 'CANCELLED'" in said and "TIMEOUT" in said
    assert [job.state for job in training.own()] == ["CANCELLED", "TIMEOUT", "COMPLETED"]
    assert training.retraining.went_on()


def test_jobs_that_fail_are_submitted_twice_and_stop_only_what_needs_them(cluster, tmp_path):
    """A job out of memory gets twice as much; a training that diverges fails again, and the other seed goes on."""
    workspace = Workspace(tmp_path, "config.yaml", {"tables": {"studies": []}, "check": False})
    for name, begin in (("tokens", HUNGRY), ("train", DIVERGING)):
        script = tmp_path / f"workflow/scripts/{name}.py"
        script.write_text(begin + script.read_text())
    before = {job.id for job in cluster.jobs()}
    adapters = [f"results/en-zh/llada-8b/seed{seed}/adapter/adapter.json" for seed in (1, 2)]
    given = ["--default-resources", "mem_mb=1000*attempt", "runtime=5"]
    targets = [*adapters, "results/corpus/en-zh/length_ratios.json"]
    said = workspace.run(*QUICK, *targets, *given, environment=cluster.environment, fails=True)
    assert "exceeded memory limit" in said, said
    assert f"error: {adapters[0]}: the loss is not finite at step 2 of 8" in said
    assert [Path(tmp_path, target).exists() for target in targets] == [False, True, True]
    states = sorted((job.rule, job.state) for job in cluster.jobs() if job.id not in before and job.rule != "corpus")
    ratios = [("length_ratios", "COMPLETED"), ("length_ratios", "FAILED")]
    assert states == [*ratios, ("train", "COMPLETED"), ("train", "FAILED"), ("train", "FAILED")]


def test_the_check_is_a_job_and_what_slurm_refuses_is_said(cluster, tmp_path):
    """All checks pass, with two processes; what the training says stands between the lines of the log."""
    two = {"training": {"processes": 2}}
    smallest = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", two, real=True)
    smallest.run(*QUICK, "--force", "check", environment=cluster.environment)
    results = tmp_path / "results/smallest"
    lines, log = (results / "check.txt").read_text().splitlines(), (results / "logs/check.log").read_text()
    assert all(line in log for line in lines)
    states = {line[8:34].strip(): line.split()[0] for line in lines}
    apart = {"GPUs", "decoding llama3-tiny"}  # an autoregressive one
    assert {name: state for name, state in states.items() if state != "ok"} == dict.fromkeys(apart, "skipped")
    assert {"torch", "training", "decoding llada-tiny"} <= states.keys()
    assert any("2 processes, float32, losses " in line for line in lines)
    partitions = tmp_path / "profiles/slurm/partitions.yaml"
    partitions.write_text(partitions.read_text().replace("  cpu:", "  elsewhere:"))
    said = smallest.run(*QUICK, "--force", "check", environment=cluster.environment, fails=True)
    assert "failed: check" in said and "invalid partition specified: elsewhere" in said, said
