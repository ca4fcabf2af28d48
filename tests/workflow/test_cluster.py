"""What may happen to a job on a cluster, and to Snakemake meanwhile, on a real SLURM: `make test-cluster`."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter

import pytest
from slurm_cluster import NEEDS_SLURM, OFTEN, QUICK, ended
from workspace import Retraining, Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM]


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


def test_the_check_is_a_job_and_what_slurm_refuses_is_said(cluster, tmp_path):
    """All checks pass, with two processes; what the training says stands between the lines of the log."""
    two = {"training": {"processes": 2}}
    smallest = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", two, real=True)
    smallest.run(*QUICK, "--force", "check", environment=cluster.environment)
    results = tmp_path / "results/smallest"
    lines, log = (results / "check.txt").read_text().splitlines(), (results / "logs/check.log").read_text()
    assert all(line in log for line in lines)
    assert {line.split()[0] for line in lines} == {"ok", "skipped"}
    assert any("2 processes, float32, losses " in line for line in lines)
    partitions = tmp_path / "profiles/slurm/partitions.yaml"
    partitions.write_text(partitions.read_text().replace("  cpu:", "  elsewhere:"))
    said = smallest.run(*QUICK, "--force", "check", environment=cluster.environment, fails=True)
    assert "failed: check" in said and "invalid partition specified: elsewhere" in said, said


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
    waits_for_its_jobs_after_sigterm(training)


def waits_for_its_jobs_after_sigterm(training):
    """And submits no more: another run of Snakemake finds nothing to do."""
    process = training.start()
    training.cluster.until(training.processes)
    os.kill(process.pid, signal.SIGTERM)
    said, _ = process.communicate()
    assert process.returncode != 0 and "Will exit after finishing currently running jobs" in said, said
    assert training.states() == ["CANCELLED", "COMPLETED"] and training.retraining.went_on()
    training.run()
    assert training.states() == ["CANCELLED", "COMPLETED"]


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


def test_jobs_on_gpus_go_to_their_partition(cluster, tmp_path):
    """The paper's settings but for a training's GPUs; the jobs only touch their outputs."""
    over = {"tables": {"studies": []}, "training": {"processes": 2}, "decoding": {"shards": 1}, "check": False}
    workspace = Workspace(tmp_path, "config.yaml", over)
    runs = [f"results/en-zh/llada-8b/seed{seed}" for seed in (1, 2)]
    targets = [f"{run}/adapter/adapter.json" for run in runs]
    targets += [f"{runs[0]}/{path}" for path in ("matrix/scores.jsonl", "latency/wmt22/ev/med-T32.json")]
    targets.append("results/corpus/en-zh/length_ratios.json")
    quick = ["--profile", "slurm", "--set-threads", "train=4", "latency=4", *OFTEN]  # the node has 16 cores
    before = {job.id for job in cluster.jobs()}
    workspace.run(*quick, *targets, environment=cluster.environment)
    assert all((tmp_path / target).is_file() for target in targets)
    new = [job for job in cluster.jobs() if job.id not in before]
    assert Counter((job.rule, job.partition, job.asked) for job in new) == {
        ("train", "gpu", "gres:gpu:2"): 2,
        **{(rule, "gpu", "gres:gpu:1"): 1 for rule in ("set_score_translate", "latency")},
        **{(rule, "cpu", "N/A"): 1 for rule in ("corpus", "length_ratios")},
    }
