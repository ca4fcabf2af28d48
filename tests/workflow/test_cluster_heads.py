"""What may happen to Snakemake while its jobs are on a cluster, on a real SLURM: `make test-cluster`."""

import os
import re
import signal

import pytest
from slurm_cluster import NEEDS_SLURM

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM]


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
