"""What rules have in common, read from their text: names, captions, the cluster's entry of each that asks for a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from entropy_valley.experiment import study_checks

ROOT = Path(__file__).parents[2]
RULES = {
    match[1]: match[2]
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))
    for match in re.finditer(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", path.read_text(encoding="utf-8"), re.M | re.S)
}
ON_GPU = {name for name, text in RULES.items() if "gpu=" in text}


def test_every_rule_that_asks_for_a_gpu_has_its_time_memory_and_cores_on_a_cluster():
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    assert {"train", "decode", "valley"} < ON_GPU
    assert profile["set-threads"].keys() == ON_GPU
    assert profile["set-resources"].keys() == ON_GPU
    assert all(entry.keys() == {"runtime", "mem_mb"} for entry in profile["set-resources"].values())


def test_the_page_on_clusters_names_every_rule_that_asks_for_a_gpu():
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert [name for name in sorted(ON_GPU) if f"`{name}`" not in page] == []


def test_captions_are_there_and_used():
    named = set(re.findall(r"report/(\w+\.rst)", "".join(RULES.values()))) | {"workflow.rst"}
    assert named == {path.name for path in (ROOT / "workflow" / "report").iterdir()}


@pytest.mark.parametrize(("kind", "taken"), [("tables", study_checks.TABLES), ("figures", study_checks.FIGURES)])
def test_no_study_has_the_name_of_another_rules_file(kind, taken):
    assert set(re.findall(rf"{kind}/(\w+)\.", "".join(RULES.values()))) == set(taken)


@pytest.mark.parametrize("kind", ["tables", "figures"])
def test_a_table_and_a_figure_are_made_by_the_script_of_their_rule(kind):
    text = (ROOT / "workflow" / "rules" / f"{kind}.smk").read_text(encoding="utf-8")
    names = re.findall(r"^rule (\w+):", text, re.M)
    assert all(name.endswith(f"_{kind.removesuffix('s')}") for name in names)
    assert re.findall(r"scripts/(\w+)\.py", text) == names
