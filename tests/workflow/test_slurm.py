"""The workflow on a SLURM of its own: what is submitted where, and one demo system from an adapter to a table."""

import re
from collections import Counter

import pytest
from slurm_cluster import NEEDS_SLURM, OFTEN
from workspace import Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow, NEEDS_SLURM]

QUICK = ["--profile", "slurm", "--set-threads", "train=4", "latency=4", *OFTEN]  # the node has 16 cores


@pytest.fixture
def submitted(cluster):
    """How often a rule was submitted to a partition with a request for generic resources, since the test began."""
    before = {job.id for job in cluster.jobs()}

    def jobs():
        new = [job for job in cluster.jobs() if job.id not in before]
        assert {job.state for job in new} <= {"COMPLETED", "COMPLETING"}
        return Counter((job.rule, job.partition, job.asked) for job in new)

    return jobs


def test_jobs_on_gpus_go_to_their_partition_and_those_at_once_see_gpus_of_their_own(cluster, submitted, tmp_path):
    """The paper's settings but for a training's GPUs; the jobs only note which GPUs they have, and touch outputs."""
    over = {"tables": {"studies": []}, "training": {"processes": 2}, "decoding": {"shards": 1}, "check": False}
    workspace = Workspace(tmp_path, "config.yaml", over)
    workspace.note_gpus(2, "train")
    runs = [f"results/en-zh/llada-8b/seed{seed}" for seed in (1, 2)]
    targets = [f"{run}/adapter/adapter.json" for run in runs]
    targets += [f"{runs[0]}/{path}" for path in ("matrix/scores.jsonl", "latency/wmt22/ev/med-T32.json")]
    targets.append("results/corpus/en-zh/length_ratios.json")
    workspace.run(*QUICK, *targets, environment=cluster.environment)
    assert all((tmp_path / target).is_file() for target in targets)
    assert submitted() == {
        ("train", "gpu", "gres:gpu:2"): 2,
        **{(rule, "gpu", "gres:gpu:1"): 1 for rule in ("set_score_translate", "latency")},
        **{(rule, "cpu", "N/A"): 1 for rule in ("corpus", "length_ratios")},
    }
    seen = workspace.gpus_seen("train")
    assert [len(gpus) for gpus in seen] == [2] * 2
    assert len({gpu for gpus in seen for gpu in gpus}) == 4, seen


def test_a_system_of_the_smallest_demo_runs_through_sbatch(cluster, trained, submitted, tmp_path):
    """From its adapter, which jobs have made, to a table."""
    study = {"studies": {"one": {"directions": ["en-zh"], "methods": ["ev"]}}, "tables": {"studies": ["one"]}}
    smallest, table = trained.copied(tmp_path / "copy"), "results/smallest/tables/one.tex"
    said = smallest.run(*QUICK, table, over=study, environment=cluster.environment)
    assert re.search(r"done: .*jobid: \d+ \(Rule: score\)", said), said
    assert "Entropy-Valley" in (smallest.folder / table).read_text()
    assert {(partition, asked) for _, partition, asked in submitted()} == {("cpu", "N/A")}
    once = ("train_comet", "set_score_translate")  # a set is one job
    assert Counter(name for name, *_ in submitted().elements()) == dict.fromkeys(once, 1)
