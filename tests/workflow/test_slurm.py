"""The workflow on a SLURM of its own: what is submitted where, and one demo system from nothing to a table."""

from __future__ import annotations

from collections import Counter

import pytest
from slurm_cluster import NEEDS_SLURM, started
from workspace import Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM]

QUICK = ["--jobs", "4", "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "5"]


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
    testset = "results/en-zh/llada-8b/seed1/wmt22"
    methods = ["oracle", "ratio", "ev", "ratio_0.70"]
    over = {
        "matrix": {"methods": methods},
        "tables": {"studies": []},  # each job starts a Snakemake of its own, which reads them all
        "length_methods": {"ratio_0.70": {"selector": "ratio", "ratios": 0.70}},
    }
    targets = [
        *(f"{testset}/{method}/canvas.jsonl" for method in ("oracle", "ratio_0.70")),
        f"{testset}/ev/med-T32/scores.json",
    ]
    Workspace(tmp_path, "config.yaml", over).run(
        "--profile", "slurm", *targets, *QUICK, environment=cluster.environment
    )
    assert all((tmp_path / target).is_file() for target in targets)
    assert submitted(cluster) == {
        ("check", "gpu", "gres:gpu:8"): 1,
        ("train", "gpu", "gres:gpu:8"): 1,
        ("inference", "gpu", "gres:gpu:1"): 1,
        ("cells.en-zh.llada-8b.seed1_canvas_decode", "cpu", "N/A"): 1,
        ("comet", "gpu", "gres:gpu:1"): 1,
        ("scores.en-zh.wmt22_score", "cpu", "N/A"): 1,
    }


def test_a_system_of_the_smallest_demo_runs_wholly_through_sbatch(cluster, tmp_path):
    study = {"studies": {"one": {"directions": ["en-zh"], "methods": ["ev"]}}, "tables": {"studies": ["one"]}}
    smallest = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", study, real=True)
    before = submitted(cluster)
    smallest.run("--profile", "slurm", "results/smallest/tables/one.tex", *QUICK, environment=cluster.environment)
    assert "Entropy-Valley" in (smallest.folder / "results/smallest/tables/one.tex").read_text()
    jobs = Counter(name for name, *_ in (submitted(cluster) - before).elements())
    assert {(partition, asked) for _, partition, asked in submitted(cluster) - before} == {("cpu", "N/A")}
    groups = ("cells.en-zh.llada-tiny.seed1_canvas_decode", "scores.en-zh.grammar_score")
    once = ("pretrain", "train_comet", "train", "inference", "comet", "table", *groups)
    assert jobs == dict.fromkeys(once, 1)
