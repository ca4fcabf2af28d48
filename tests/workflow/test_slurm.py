"""The workflow on a SLURM of its own: what is submitted where, and one demo system from nothing to a table."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections import Counter
from getpass import getuser
from pathlib import Path

import pytest
from workspace import Retraining, Workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("sbatch"), reason="needs slurm-wlm and munge"),
]

MINISLURM = Path(__file__).parents[1] / "slurm" / "minislurm.sh"
QUICK = ["--jobs", "4", "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "5"]


@pytest.fixture(scope="module")
def cluster():
    """The environment in which sbatch and squeue speak to a SLURM of one node."""
    folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # a short path, open to munge
    variables = {"MINISLURM_PORT": str(free_port())}
    subprocess.run([MINISLURM, "start", folder], env={**os.environ, **variables}, check=True)
    yield {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    subprocess.run([MINISLURM, "stop", folder], check=True)
    shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """One of two free neighbours."""
    for port in range(16817, 60000, 2):
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("127.0.0.1", port))
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise RuntimeError("no free ports")


def submitted(cluster) -> Counter[tuple[str, str, str]]:
    """How often a rule was submitted to a partition asking for generic resources."""
    fields = subprocess.run(
        ["squeue", "--noheader", "--states=all", "--Format=Comment:80|,Partition:20|,tres-per-job:20|,State:20"],
        env={**os.environ, **cluster},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [[field.strip() for field in line.split("|")] for line in fields.splitlines()]
    assert {state for *_, state in rows} <= {"COMPLETED", "COMPLETING"}
    return Counter((rule(comment), partition, asked) for comment, partition, asked, _ in rows)


def rule(comment: str) -> str:
    """``rule_train_wildcards_…`` is how the plugin comments its jobs."""
    return comment.removeprefix("rule_").split("_wildcards")[0]


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
    Workspace(tmp_path, "config.yaml", over).run("--profile", "slurm", *targets, *QUICK, environment=cluster)
    assert all((tmp_path / target).is_file() for target in targets)
    assert submitted(cluster) == {
        ("check", "gpu", "gres:gpu:8"): 1,
        ("train", "gpu", "gres:gpu:8"): 1,
        ("inference", "gpu", "gres:gpu:1"): 1,
        ("cells.en-zh.llada-8b.seed1_canvas_decode", "cpu", "N/A"): 1,
        ("comet", "gpu", "gres:gpu:1"): 1,
        ("scores.en-zh.wmt22_score", "cpu", "N/A"): 1,
    }


@pytest.fixture(scope="module")
def smallest(tmp_path_factory):
    study = {"studies": {"one": {"directions": ["en-zh"], "methods": ["ev"]}}, "tables": {"studies": ["one"]}}
    folder = tmp_path_factory.mktemp("smallest")
    return Workspace(folder, "config/demo.yaml", "config/smallest.yaml", study, real=True)


def test_a_system_of_the_smallest_demo_runs_wholly_through_sbatch(cluster, smallest):
    before = submitted(cluster)
    smallest.run("--profile", "slurm", "results/smallest/tables/one.tex", *QUICK, environment=cluster)
    assert "Entropy-Valley" in (smallest.folder / "results/smallest/tables/one.tex").read_text()
    jobs = Counter(name for name, *_ in (submitted(cluster) - before).elements())
    assert {(partition, asked) for _, partition, asked in submitted(cluster) - before} == {("cpu", "N/A")}
    groups = ("cells.en-zh.llada-tiny.seed1_canvas_decode", "scores.en-zh.grammar_score")
    once = ("pretrain", "train_comet", "train", "inference", "comet", "table", *groups)
    assert jobs == dict.fromkeys(once, 1)


def test_a_killed_retraining_resumes_in_its_next_attempt_and_the_old_adapter_stays_until_then(cluster, smallest):
    """The job is killed as a lost node kills it, with the Snakemake in it."""
    retraining = Retraining(smallest.folder)
    options = ["--profile", "slurm", retraining.target, *QUICK]
    process = smallest.start(*options, over=retraining.over, environment=cluster)
    retraining.begun(process)
    variables = {**os.environ, **cluster}
    subprocess.run(
        ["scancel", "--full", "--signal=KILL", "--state=RUNNING", f"--user={getuser()}"], env=variables, check=True
    )
    assert retraining.is_unfinished()
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert "Trying to restart job" in said
    assert retraining.went_on()
