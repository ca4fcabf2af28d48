"""What rules have in common, read from their text: captions, resources, public names of Snakemake alone."""

import re
from pathlib import Path

import pytest
import yaml

from entropy_valley.experiment.stats.job_costs import gpus
from entropy_valley.experiment.tables import REPORTS
from entropy_valley.experiment.tables.report import ENDINGS

ROOT = Path(__file__).parents[2]
RULES = {
    match[1]: match[2]
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))
    for match in re.finditer(r"^ *rule (\w+):\n(.*?)(?=^\S|^ *rule |\Z)", path.read_text(encoding="utf-8"), re.M | re.S)
}
ON_GPU = {name for name, text in RULES.items() if "gpu=" in text}
SLURM = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))


def test_every_rule_that_asks_for_a_gpu_has_its_time_memory_and_cores_on_a_cluster():
    """The check requests what a training does."""
    assert gpus("cuda", 8).keys() == ON_GPU - {"check"} == {"train", *SLURM["set-threads"]}
    assert all("memory_of(" in RULES[rule] for rule in ON_GPU)
    assert {rule for rule, block in SLURM["set-resources"].items() if block["runtime"] >= 60} == ON_GPU


def test_the_rules_that_share_an_allocation_share_its_time_limit():
    assert {*SLURM["groups"]} == {"translate", "score"} and len(set(SLURM["groups"].values())) == 1
    times = {rule: block["runtime"] for rule, block in SLURM["set-resources"].items()}
    assert sum(times[rule] for rule in SLURM["groups"]) == times["train"]


def test_rules_that_a_cluster_runs_have_a_benchmark():
    """By it the plan counts jobs."""
    local = {name for name, text in RULES.items() if "localrule: True" in text}
    scripts = {name for name, text in RULES.items() if "script:" in text}
    assert {name for name, text in RULES.items() if "benchmark:" in text} == scripts - local - {"check"}


def test_every_rule_with_a_script_has_its_spec_and_a_log_by_which_it_is_known():
    """A workflow that has this one as a module may call a rule otherwise, see ``rule_of``."""
    scripts = {name: text for name, text in RULES.items() if "script:" in text}
    assert [name for name, text in scripts.items() if not re.search(rf"{{R}}/logs/{name}[/.]", text)] == []
    assert [name for name, text in scripts.items() if not re.search(r"\bspec=", text)] == []
    assert [name for name, text in RULES.items() if "shell:" in text] == []


@pytest.mark.parametrize("name", ["default", "demo", "local-gpu", "slurm"])
def test_every_profile_runs_killed_jobs_again_and_leaves_code_to_the_revisions(name):
    profile = yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text(encoding="utf-8"))
    assert profile["rerun-incomplete"] is True
    assert profile["rerun-triggers"] == ["mtime", "input", "params"]


def test_every_report_has_a_caption_and_a_rule_that_makes_its_files():
    endings = {endings_of(text) for text in RULES.values() if "scripts/report.py" in text and endings_of(text)}
    assert {ENDINGS[kind.rule] for kind in REPORTS.values()} == endings
    assert all(callable(kind.caption) or kind.caption.endswith(".") for kind in REPORTS.values())


def endings_of(rule):
    outputs = rule.partition("output:")[2].partition("log:")[0]
    return tuple(re.findall(r"\{\{\w+\}\}\.([\w.]+)\"", outputs))
