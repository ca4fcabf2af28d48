"""The workflow on a SLURM of its own: what is submitted where, and one demo system from nothing to a table."""

from __future__ import annotations

from collections import Counter

import pytest
from slurm_cluster import NEEDS_SLURM, started
from workspace import Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM]

QUICK = ["--profile", "slurm", "--jobs", "4", "--slurm-init-seconds-before-status-checks", "5"]


@pytest.fixture(scope="module")
def cluster():
    """A SLURM of one node, without a database."""
    with started() as cluster:
        yield cluster


def submitted(cluster) -> Counter[tuple[str, str, str]]:
    """How often a rule was submitted to a partition asking for generic resources."""
    jobs = cluster.jobs()
    assert {job.state for job in jobs} <= {"COMPLETED", "COMPLETING"}
    return Counter((job.rule, job.partition, job.asked) for job in jobs)


def test_gpu_rules_ask_for_gpus_in_the_gpu_partition(cluster, tmp_path):
    """The paper's settings, with jobs that only touch their outputs."""
    run = "results/en-zh/llada-8b/seed1"
    over = {"tables": {"studies": []}}  # each job starts a Snakemake of its own, which reads them all
    targets = [f"{run}/matrix/scores.jsonl", f"{run}/diagnostics.json", f"{run}/latency/wmt22/ev/med-T32.json"]
    targets.append("results/corpus/en-zh/length_ratios.json")
    Workspace(tmp_path, "config.yaml", over).run(*QUICK, *targets, environment=cluster.environment)
    assert all((tmp_path / target).is_file() for target in targets)
    one = ("translate", "score", "diagnose", "latency")
    assert submitted(cluster) == {
        ("train", "gpu", "gres:gpu:8"): 1,
        **{(rule, "gpu", "gres:gpu:1"): 1 for rule in one},
        **{(rule, "cpu", "N/A"): 1 for rule in ("corpus", "length_ratios")},
    }


def test_a_system_of_the_smallest_demo_runs_wholly_through_sbatch(cluster, tmp_path):
    study = {"studies": {"one": {"directions": ["en-zh"], "methods": ["ev"]}}, "tables": {"studies": ["one"]}}
    smallest = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", study, real=True)
    before = submitted(cluster)
    smallest.run(*QUICK, "results/smallest/tables/one.tex", environment=cluster.environment)
    assert "Entropy-Valley" in (smallest.folder / "results/smallest/tables/one.tex").read_text()
    new = submitted(cluster) - before
    assert {(partition, asked) for _, partition, asked in new} == {("cpu", "N/A")}
    once = ("pretrain", "train_comet", "train", "translate", "score", "table")
    assert Counter(name for name, *_ in new.elements()) == dict.fromkeys(once, 1)
