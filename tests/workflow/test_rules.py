"""What rules have in common, read from their text: names, captions, the cluster's entry of each that asks for a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from entropy_valley.stats.job_costs import gpus
from entropy_valley.tables import REPORTS

ROOT = Path(__file__).parents[2]
RULES = {
    match[1]: match[2]
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))
    for match in re.finditer(r"^ *rule (\w+):\n(.*?)(?=^\S|^ *rule |\Z)", path.read_text(encoding="utf-8"), re.M | re.S)
}
ON_GPU = {name for name, text in RULES.items() if "gpu=" in text}
SLURM = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))


def test_every_rule_that_asks_for_a_gpu_has_its_time_memory_and_cores_on_a_cluster():
    assert gpus("cuda", 8).keys() == ON_GPU
    assert SLURM["set-threads"].keys() == ON_GPU
    assert all({"runtime", "mem_mb"} <= SLURM["set-resources"][rule].keys() for rule in ON_GPU)
    assert {*SLURM["set-resources"], *SLURM["preemptible-rules"]} <= RULES.keys()


def test_no_attempt_requests_more_time_and_its_memory_has_a_bound():
    """So that all attempts of a job find the same partition."""
    requested = [SLURM["default-resources"], *SLURM["set-resources"].values()]
    assert all(isinstance(one["runtime"], int) and one["runtime"] <= 720 for one in requested)
    for rule in SLURM["preemptible-rules"]:
        assert SLURM["set-resources"][rule]["runtime"] <= 240
    memory = [one["mem_mb"] for one in requested if "mem_mb" in one]
    for first, second, tenth in ([eval(text, {"attempt": at}) for at in (1, 2, 10)] for text in memory):
        assert first < second == tenth


@pytest.mark.parametrize("name", ["default", "demo", "local-gpu", "slurm"])
def test_every_profile_runs_killed_jobs_again_and_leaves_code_to_the_revisions(name):
    profile = yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text(encoding="utf-8"))
    assert profile["rerun-incomplete"] is True
    assert profile["rerun-triggers"] == ["mtime", "input", "params"]


def test_the_page_on_clusters_names_every_rule_that_asks_for_a_gpu():
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert [name for name in sorted(ON_GPU) if f"`{name}`" not in page] == []


def test_every_job_has_a_log_and_its_params():
    jobs = {name: text for name, text in RULES.items() if "script:" in text or "shell:" in text}
    assert len(jobs) > 20
    assert [name for name, text in jobs.items() if "log:" not in text or "spec=" not in text] == []
    assert [name for name, text in jobs.items() if "shell:" in text] == ["dev_as_testset"]  # the rest are scripts


def test_captions_are_there_and_used():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk")]
    named = set(re.findall(r"report/(\w+\.rst)", "".join(texts))) | {"workflow.rst"}
    assert named == {path.name for path in (ROOT / "workflow" / "report").iterdir()}


def test_every_report_has_a_caption_and_a_rule_that_makes_its_files():
    made = {endings_of(text) for name, text in RULES.items() if "scripts/report.py" in text and endings_of(text)}
    assert {kind.endings for kind in REPORTS.values()} == made
    assert all(kind.caption.endswith(".") for kind in REPORTS.values())


def endings_of(rule):
    outputs = rule.partition("output:")[2].partition("log:")[0]
    return tuple(re.findall(r"\{\{\w+\}\}\.([\w.]+)\"", outputs))
